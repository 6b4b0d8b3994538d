package model_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
)

// fullState is a state with each field.
func fullState() model.NodeState {
	now := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	m := model.ManifestState{
		Revision: 7, Digest: "sha256-abc", Outcome: model.OutcomeFailed, At: now, Error: "a:1:2: exec#x: exit code 1", Seen: 8, SeenAt: now, Late: "refused: because", FailedSince: now,
		Ran:    &model.RanRevision{Revision: 6, Digest: "sha256-def", Outcome: model.OutcomeStable, At: now},
		Counts: model.Counts{Total: 1, Unique: 2, Changed: 3, Failed: 4, Skipped: 5, Stable: 6, Refreshed: 7, Unmet: 8, NotRun: 9, Noop: 10, HealthChecks: model.HealthCounts{OK: 1, Warning: 2, Critical: 3, Unknown: 4}},
	}

	return model.NodeState{
		Protocol: model.ProtocolNode, Node: "web01", Event: model.NodeStopped, Host: "web01.example.net", Version: "1.2.0", Started: now, At: now.In(time.FixedZone("", 3600)),
		Groups: []string{"web", "eu"}, Labels: map[string]string{"rack": "a3", "row": ""}, Manifests: map[string]model.ManifestState{"group.web.motd": m, "node.web01.own": {}},
		Health: model.HealthCounts{OK: 1}, Outbox: 2, Watches: 3, Polled: 4, Message: "a message", SilentAfter: model.Duration(15 * time.Minute),
		Clock:    model.ClockOffset{Offset: model.Offset(-time.Second), Within: model.Duration(time.Millisecond)},
		Flapping: []model.FlappingState{{Manifest: "group.web.motd", Resource: model.Ref{Type: "file", Name: "/etc/motd"}, Since: now}},
		Paused:   &model.Paused{From: "node.web01.pause", By: "anna", At: now},
	}
}

// states returns states, including some that nodes never write.
func states(t testing.TB) []string {
	t.Helper()
	text, err := json.Marshal(fullState())
	if err != nil {
		t.Fatal(err)
	}
	full := string(text)
	indented, err := json.MarshalIndent(fullState(), "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	out := []string{
		full, string(indented), full + "\n", full + "x", full + "{}", full[:len(full)-1], "", "null", "{}", "[]", `"a"`, "garbage", `{"node":}`, `{"node":"a",}`, `{,"node":"a"}`, `{"node" "a"}`, `{"node":"a" "host":"b"}`,
		`{"NODE":"a"}`, `{"node":"a","Node":"b"}`, `{"node":"a","node":"b"}`, `{"n\u006fde":"a"}`, `{"node":null}`, `{"node":5}`, `{"node":"a\"b\\\u001b[2J","message":"é"}`, "{\"node\":\"\xff\"}", "{\"node\":\"a\tb\"}", `{"none":[1,{"a":"]"}],"node":"a"}`,
		`{"groups":null}`, `{"groups":[]}`, `{"groups":["a",]}`, `{"groups":["a"`, `{"groups":[1]}`, `{"groups":{}}`, `{"labels":{"a":"1","a":"2"}}`, `{"labels":{"a":1}}`, `{"labels":null}`, `{"labels":{}}`,
		`{"outbox":1.0}`, `{"outbox":1e3}`, `{"outbox":01}`, `{"outbox":-1}`, `{"outbox":-0}`, `{"outbox":-}`, `{"outbox":"1"}`, `{"outbox":12345678901234567890}`, `{"outbox":+1}`, `{"outbox":1 }`, `{"outbox":1x}`,
		`{"manifests":{"a":{"revision":-1}}}`, `{"manifests":{"a":{"revision":18446744073709551615}}}`, `{"manifests":{"a":{"revision":1},"a":{"seen":2}}}`, `{"manifests":{"a":null}}`, `{"manifests":{"a":{"counts":{"total":1,"total":2}}}}`,
		`{"manifests":{"a":{"counts":{"health_checks":{"ok":1}}}}}`, `{"manifests":{"a":{"counts":{"health_checks":null}}}}`, `{"manifests":{"\u0061":{"error":"a\nb"}}}`, `{"manifests":null}`, `{"manifests":{"a":{"x":1}}}`,
		`{"started":"2026-01-02T03:04:05Z"}`, `{"started":"2026-01-02"}`, `{"started":"2026-01-02T03:04:05+01:00"}`, `{"started":null}`, `{"started":""}`, `{"started":"2026-01-02T24:04:05Z"}`, `{"started":"2026-01-02T3:04:05Z"}`, `{"started":"2026-01-02T03:04:05,5Z"}`,
		`{"silent_after":"15m"}`, `{"silent_after":15}`, `{"silent_after":"-1s"}`, `{"silent_after":""}`, `{"silent_after":null}`, `{"clock":{"offset":"-1s"}}`, `{"clock":{"offset":"x"}}`, `{"clock":null}`, `{"clock":{"offset":"1s","offset":"2s"}}`,
		`{"paused":null}`, `{"paused":{"by":"a}"}}`, `{"paused":{"by":"a}"}`, `{"paused":"x"}`, `{"flapping":[{"manifest":"]"}],"node":"a"}`, `{"flapping":[}`, `{"flapping":[]]}`, `{"flapping":5}`, `{"paused": {"by": "\\"} , "node":"b"}`,
		`{"dropped":5,"dropped_ranges":[{"from":1,"to":2}]}`, `{"node":"` + strings.Repeat("x", 1000) + `"}`,
	}

	return out
}

// results returns transactions, summaries of runs, answers and health results, including some that nodes
// never write.
func results() []string {
	return []string{
		`{"protocol":"io.muster.v1.transaction","event_id":"3MOeJR8KxiL9lSC9VS4ODezLOnL","timestamp":"2026-01-02T03:04:05.6Z","type":"file","name":"/etc/motd","duration":5,"properties":{"a": [1, 2e3]},"status":{"exit_code":1},"changed":true,` +
			`"changes":[{"action":"store","diff":"+a\n"}],"source":{"file":"a","line":3},"within":"apply#x","drift":{"from":"mode: 0666","seen_at":"2026-01-02T03:04:05Z","latency":5},"outputs":{"exit_code":1,"n":0.5,"l":[null,true,"x"]},"error":["a"],"unmet_requirements":["exec#a"]}`,
		`{"changed":1}`, `{"changed":null}`, `{"Changed":true,"changed":false}`, `{"duration":1.5}`, `{"duration":"5s"}`, `{"properties":null}`, `{"properties":}`, `{"status":[}`, `{"properties": "a" ,"status":5}`, `{"error":"a"}`, `{"error":[null]}`,
		`{"unmet_requirements":["a"]}`, `{"unmet_requirements":[""]}`, `{"unmet_requirements":[5]}`, `{"within":""}`, `{"within":null}`, `{"drift":{}}`, `{"drift":null}`, `{"drift":{"latency":"1s"}}`, `{"source":null}`, `{"source":{"line":-1}}`, `{"source":"a:1"}`,
		`{"outputs":{"a":1,"a":{"b":2}}}`, `{"outputs":{"a":1e999}}`, `{"outputs":{"a":"\ud800"}}`, "{\"name\":\"\xff\"}", `{"properties":"\ud800"}`, "{\"properties\":\"\xff\"}", `{"health_check":[{"status":"ok"}]}`, `{"resumes":"x"}`, `{"Resumes":5}`,
		`{"protocol":"io.muster.v1.run","started":"2026-01-02T03:04:05+01:00","duration":7,"counts":{"total":12,"changed":1},"error":["a","b"],"drift":{"detected":1,"repaired":1},"unchanged":[{"run_id":"x","transactions":3}],"resumes":"2026-01-02T03:04:05Z","retry":true,"refused":true}`,
		counts(""), counts(" "), counts("0"), counts("-"), counts("9"), counts("99999999"), counts("9999999999999999999"), counts(`"a":5,`), counts(`"Total":7,`), counts(`"total":7,`), counts("null,"), strings.Replace(counts(""), "12", "12.5", 1),
		strings.Replace(counts(""), "12", "1e1", 1), strings.Replace(counts(""), `"ok":3`, `"ok":null`, 1), strings.Replace(counts(""), "}}", "} }", 1), strings.Replace(counts(""), "}}", "}", 1), strings.Replace(counts(""), "}}", `},"total":5}`, 1),
		`{"counts":null}`, `{"counts":{}}`, `{"counts":{"total":1},"counts":{"unique":2}}`, counts("")[:len(counts(""))-1] + `,"counts":{"unique":2}}`, `{"counts":{"total":"12"}}`, `{"counts":[]}`, `{"unchanged":[{}]}`, `{"unchanged":{}}`, `{"started":"2026-01-02T03:04:05,5Z"}`, `{"started":"2026-01-02 03:04:05Z"}`, `{"revision":-1}`, `{"revision":1e3}`,
		`{"protocol":"io.muster.v1.ensure.response","phase":"done","state":{"type":"file","name":"/a","changed":true},"runs":[{"manifest":"a","outcome":"stable","counts":{"total":1}}],"error":"x"}`, `{"state":5}`, `{"state":null}`, `{"runs":[5]}`,
		`{"resource":"file#/etc/motd","check":"x","status":"critical","was":"ok","output":"a"}`, `{"resource":"x"}`, `{"resource":{"type":"a"}}`, strings.Repeat("[", 10_001), `{"properties":` + strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999) + "}",
		`{"properties":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + "}",
	}
}

// counts is a document with counts in their order, with something before the first number, or the first name.
func counts(with string) string {
	name, number := "", with
	if strings.HasSuffix(with, ",") {
		name, number = with, ""
	}

	return `{"counts":{` + name + `"total":` + number + `12,"unique":11,"changed":1,"failed":2,"skipped":3,"stable":4,"refreshed":5,"unmet":6,"not_run":7,"noop":8,"health_checks":{"ok":3,"warning":4,"critical":5,"unknown":6}}}`
}

// same compares the decoded values with the values of encoding/json.
func same(t *testing.T, text string) {
	t.Helper()
	sameAs(t, text, model.DecodeJSON[model.NodeState])
	sameAs(t, text, model.DecodeJSON[model.Transaction])
	sameAs(t, text, model.DecodeJSON[model.Run])
	sameAs(t, text, model.DecodeJSON[model.EnsureResponse])
	sameAs(t, text, model.DecodeJSON[model.HealthReport])
}

func sameAs[T any](t *testing.T, text string, decode func([]byte) (*T, error)) {
	t.Helper()
	got, err := decode([]byte(text))
	want := new(T)
	failed := json.Unmarshal([]byte(text), want)
	if fmt.Sprint(err) != fmt.Sprint(failed) {
		t.Fatalf("%T %q: %v, want %v", want, text, err, failed)
	}
	if err != nil {
		want = nil
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%T %q:\n%+v, want\n%+v", want, text, got, want)
	}
}

// TestDocumentsAreDecodedAsByTheLibrary decodes documents with each field and documents that nodes never
// write.
func TestDocumentsAreDecodedAsByTheLibrary(t *testing.T) {
	t.Parallel()
	for _, text := range append(states(t), results()...) {
		same(t, text)
	}
}

// TestStatesAreReadAsByTheLibrary changes, removes, repeats and inserts single bytes.
func TestStatesAreReadAsByTheLibrary(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(fullState())
	if err != nil {
		t.Fatal(err)
	}
	read := model.DecodeJSON[model.NodeState]
	for i := range text {
		before, after := string(text[:i]), string(text[i+1:])
		sameAs(t, before, read)
		sameAs(t, before+after, read)
		sameAs(t, before+string(text[i])+string(text[i:]), read)
		if text[i] >= 'a' && text[i] <= 'z' && i%8 > 0 {
			continue // one letter is as another
		}
		for _, other := range []string{"0", "\"", "\\", " ", "\x00", "\xff", "{", "]", ",", "-", "e"} {
			sameAs(t, before+other+after, read)
			sameAs(t, before+other+string(text[i:]), read)
		}
	}
}

// FuzzDecodeJSON decodes any document like encoding/json.
func FuzzDecodeJSON(f *testing.F) {
	for _, text := range append(states(f), results()...) {
		if len(text) < 5000 { // the deep ones would take all the time
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) { same(t, text) })
}

// BenchmarkDecodeJSON decodes a state with all fields, and a transaction.
func BenchmarkDecodeJSON(b *testing.B) {
	state, err := json.Marshal(fullState())
	if err != nil {
		b.Fatal(err)
	}
	transaction := []byte(results()[0])
	for name, decode := range map[string]struct {
		data   []byte
		decode func([]byte) error
	}{
		"state":                         {state, decodeAs[model.NodeState]},
		"state by encoding/json":        {state, unmarshalAs[model.NodeState]},
		"transaction":                   {transaction, decodeAs[model.Transaction]},
		"transaction, by encoding/json": {transaction, unmarshalAs[model.Transaction]},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(decode.data)))
			b.ReportAllocs()
			for b.Loop() {
				if err := decode.decode(decode.data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func decodeAs[T any](data []byte) error {
	_, err := model.DecodeJSON[T](data)

	return err
}

func unmarshalAs[T any](data []byte) error { return json.Unmarshal(data, new(T)) }
