package reports

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
)

// members are those of an event as a node writes it, with its data before the extensions as the library writes them.
func members() []string {
	return []string{
		`"specversion":"1.0"`, `"id":"3MOeJR8KxiL9lSC9VS4ODezLOnL"`, `"source":"muster/node/web01"`, `"type":"io.muster.v1.run"`, `"datacontenttype":"application/json"`,
		`"dataschema":"https://example.net/run.json"`, `"time":"2026-01-02T03:04:05.6Z"`, `"data":{"run_id":"r1","error":["a \"b\" 1e5"],"counts":{"total":12}}`,
		`"runid":"r1"`, `"manifest":"group.web.motd"`, `"revision":"7"`, `"digest":"sha256-0e4f"`, `"cause":"drift"`, `"correlationid":"c1"`, `"seq":"18446744073709551615"`,
	}
}

// oddMembers are some that no node writes, or not like that.
func oddMembers() []string {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

	return []string{
		`"specversion":"0.3"`, `"specversion":"2.0"`, `"specversion":1.0`, `"specversion":null`, `"specversion":""`, `"SpecVersion":"1.0"`,
		`"id":""`, `"id":" "`, `"id":5`, `"id":null`, `"id":"a\u0062"`, `"id":"é"`, "\"id\":\"\u2003\"", "\"id\":\"\xff\"", `"id":"\ud800"`, "\"id\":\"a\x7f\"", "\"id\":\"a\tb\"", `"i\u0064":"x"`, `"ID":"x"`,
		`"source":"muster/node/web02"`, `"source":"muster/node/web01#"`, `"source":"muster/node/web01?"`, `"source":"muster/node/web%301"`, `"source":"./muster/node/web01"`, `"source":""`, `"source":"%zz"`, `"source":"muster\/node/web01"`,
		`"type":""`, `"type":" "`, `"type":null`, `"subject":"s"`, `"subject":""`,
		`"datacontenttype":"application/json; charset=utf-8"`, `"datacontenttype":"text/json"`, `"datacontenttype":"text/plain"`, `"datacontenttype":""`, `"datacontenttype":null`, `"datacontenttype":"APPLICATION/JSON"`, `"datacontenttype":"/"`,
		`"dataschema":"run.json"`, `"dataschema":"%zz"`, `"dataschema":""`, `"dataschema":"HTTPS://Example.net/a b"`, `"dataschema":"urn:x"`, `"dataschema":5`, `"schemaurl":"x"`, `"datacontentencoding":"base64"`,
		`"time":""`, `"time":"2026-01-02"`, `"time":"2026-01-02T03:04:05+01:00"`, `"time":"2026-01-02T3:04:05Z"`, `"time":"2026-01-02T03:04:05,6Z"`, `"time":"2026-01-02T24:04:05Z"`, `"time":5`, `"time":null`, `"time":"2026-01-02T03:04:05+99:00"`,
		`"data":null`, `"data":5`, `"data":-0.0`, `"data":"a"`, `"data":"\ud800\u00e9"`, `"data":true`, `"data":[]`, `"data": {"a" : 1}`, `"data" :1`, "\"data\":\n1", `"data":{"a":1,"a":2}`, "\"data\":\"\xff\"", `"data":{"":1}`, `"data_base64":"eyJhIjoxfQ=="`,
		`"data":{"a":0.1e40}`, `"data":{"a":0.1e40,"b":1e5}`, `"data":[0.1e40,"a\n"]`, `"data":1e99999999999`, `"data":[-1E5,2]`, `"data":{"a":"1e5","1e5":"\\"}`, `"data":[false,true,"\"1e5"]`, `"data":` + strings.Repeat("9", 400), `"data":0.` + strings.Repeat("0", 400) + "1",
		`"data":` + deep(9_998), `"data":` + deep(9_999), `"data":` + deep(10_000), `"data":[`, `"data":}`, `"data":01`, `"data":`, `"data"`, `data:1`,
		`"runid":""`, `"runid":null`, `"runid":5`, `"runid":true`, `"runid":{}`, `"runid":"a\"b"`, `"RunID":"r2"`, `"runId":"r2"`, `"revision":"-1"`, `"revision":"x"`, `"revision":7`, `"revision":"007"`, `"seq":"18446744073709551616"`, `"seq":"+1"`, `"cause":"x y"`,
		`"other":"x"`, `"other":5e9`, `"oth-er":"x"`, `"":"x"`, `"digest":""`, `"manifest":"<\u003c"`,
	}
}

// agrees fails where an event that is on the fast path is not what the library makes of it, and reports whether
// it counts as one.
func agrees(t *testing.T, text string) bool {
	t.Helper()
	subject := model.Report{Node: "web01", Kind: model.KindRun, Outcome: model.OutcomeStable}
	got, want := subject, subject
	is, err := fillFast(&got, []byte(text)), fillAny(&want, []byte(text))
	short := text[:min(len(text), 2000)]
	switch {
	case !is && !reflect.DeepEqual(got, subject):
		t.Fatalf("%q: it is not on the fast path, and left %+v", short, got)
	case is && err != nil:
		t.Fatalf("%q: it is on the fast path, but the library says %v", short, err)
	case is && !reflect.DeepEqual(got, want):
		t.Fatalf("%q:\n%+v, but by the library\n%+v", short, got, want)
	}

	return is
}

func object(members []string) string { return "{" + strings.Join(members, ",") + "}" }

// TestFastPath: what nodes write is decoded without the library.
func TestFastPath(t *testing.T) {
	t.Parallel()
	all := members()
	for name, text := range map[string]string{"all": object(all), "spaced": " { " + strings.Join(all, " , ") + " } \n", "no extensions": object(all[:8]), "extensions first": object(append(all[8:], all[:8]...))} {
		if !agrees(t, text) {
			t.Errorf("%s: it is not on the fast path", name)
		}
	}
	for _, data := range []string{"{}", "[]", "null", `"text"`, "5", `{"a":1,"a":2}`} {
		text, err := Event(model.Report{ID: ksuid.New().String(), Type: model.ProtocolRun, Node: "web01", Time: time.Now(), Seq: 1, Data: json.RawMessage(data)})
		if err != nil || !agrees(t, string(text)) {
			t.Errorf("%s is not on the fast path, %v", text, err)
		}
	}
}

// TestNotOnTheFastPath is left to the library.
func TestNotOnTheFastPath(t *testing.T) {
	t.Parallel()
	all := members()
	for _, text := range []string{"", "null", "[]", "5", "{}", "{", object(all) + "x", object(all) + "{}", object(all[:7]), object(all[1:]), object(append(all, all[0])), object(append(all, "")), "[" + object(all) + "]"} {
		if agrees(t, text) {
			t.Errorf("%q is on the fast path", text)
		}
	}
	for _, required := range []int{0, 1, 2, 3, 4, 6, 7} {
		if agrees(t, object(slices.Delete(members(), required, required+1))) {
			t.Errorf("it is on the fast path without %s", all[required])
		}
	}
	if first := append([]string{all[7]}, slices.Delete(members(), 7, 8)...); agrees(t, object(first)) {
		t.Error("it is on the fast path with its data before their type")
	}
}

// TestFastPathAreThoseOfTheLibrary: whatever members an event has, in any order.
func TestFastPathAreThoseOfTheLibrary(t *testing.T) {
	t.Parallel()
	all, odd := members(), oddMembers()
	for _, o := range odd {
		name, _, _ := strings.Cut(o, ":")
		agrees(t, object(append(members(), o)))
		agrees(t, object(append([]string{o}, all...)))
		for i, m := range all {
			if strings.HasPrefix(m, name+":") {
				instead := members()
				instead[i] = o
				agrees(t, object(instead))
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	fast := 0
	const times = 4000
	for range times {
		mixed := members()
		for range random.IntN(3) {
			i := random.IntN(len(mixed))
			switch random.IntN(5) {
			case 0:
				mixed = slices.Delete(mixed, i, i+1)
			case 1:
				mixed = slices.Insert(mixed, i, odd[random.IntN(len(odd))])
			case 2:
				mixed = slices.Insert(mixed, i, mixed[random.IntN(len(mixed))])
			case 3:
				mixed[i] = strings.Replace(mixed[i], ":", []string{" :", ": ", "", ":\t"}[random.IntN(4)], 1)
			case 4:
				random.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
			}
		}
		text := object(mixed)
		if at := random.IntN(20 * len(text)); at < len(text) {
			text = text[:at] + text[at+1:]
		}
		if agrees(t, text) {
			fast++
		}
	}
	if fast < times/4 || fast > times*3/4 {
		t.Errorf("%d of %d are on the fast path: this compares little", fast, times)
	}
}

// FuzzFastPath: whatever a node publishes, what is on the fast path is what the library makes of it.
func FuzzFastPath(f *testing.F) {
	f.Add(object(members()))
	for _, o := range oddMembers() {
		if len(o) < 1000 {
			f.Add(object(append(members(), o)))
			f.Add(object(append([]string{o}, members()...)))
		}
	}
	f.Fuzz(func(t *testing.T, text string) { agrees(t, text) })
}

// BenchmarkDecode decodes an event with a transaction as nodes write it.
func BenchmarkDecode(b *testing.B) {
	transaction, err := json.Marshal(model.Transaction{
		Protocol: model.ProtocolTransaction, Type: "file", Name: "/etc/motd", Provider: "posix", Changed: true, RequestedEnsure: "present", FinalEnsure: "present",
		Properties: fmt.Appendf(nil, `{"ensure":"present","content":%q,"owner":"root","group":"root","mode":"0644"}`, strings.Repeat("x", 300)),
		Changes:    []model.Change{{Action: "store", Message: "changed the content", Property: "content", Diff: strings.Repeat("+a line\n", 40)}},
	})
	if err != nil {
		b.Fatal(err)
	}
	text := []byte(object(slices.Replace(members(), 7, 8, `"data":`+string(transaction))))
	for name, decode := range map[string]func(*model.Report, []byte) bool{"fast": fillFast, "library": func(r *model.Report, text []byte) bool { return fillAny(r, text) == nil }} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if r := (model.Report{Node: "web01"}); !decode(&r, text) {
					b.Fatal("it is not decoded")
				}
			}
		})
	}
}
