package nodes

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
		Revision: 7, Digest: "sha256-abc", Outcome: model.OutcomeFailed, At: now, Error: "a:1:2: exec#x: exit code 1", Seen: 8, SeenAt: now, Late: "refused: because",
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

// documents are states, some of which no node writes.
func documents(t testing.TB) []string {
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

// same compares what is decoded with what encoding/json makes of it.
func same(t *testing.T, text string) {
	t.Helper()
	var got, want model.NodeState
	err, failed := decodeState([]byte(text), &got), json.Unmarshal([]byte(text), &want)
	if fmt.Sprint(err) != fmt.Sprint(failed) {
		t.Fatalf("%q: %v, want %v", text, err, failed)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q:\n%+v, want\n%+v", text, got, want)
	}
}

// TestStatesAreDecodedAsByTheLibrary: with each field, and what no node writes.
func TestStatesAreDecodedAsByTheLibrary(t *testing.T) {
	t.Parallel()
	for _, text := range documents(t) {
		same(t, text)
	}
}

// FuzzState: whatever a node stores, it is what encoding/json makes of it.
func FuzzState(f *testing.F) {
	for _, text := range documents(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { same(t, text) })
}

// BenchmarkState decodes a state with all fields.
func BenchmarkState(b *testing.B) {
	text, err := json.Marshal(fullState())
	if err != nil {
		b.Fatal(err)
	}
	for name, decode := range map[string]func([]byte, *model.NodeState) error{"decodeState": decodeState, "encoding/json": func(data []byte, into *model.NodeState) error { return json.Unmarshal(data, into) }} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				var n model.NodeState
				if err := decode(text, &n); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
