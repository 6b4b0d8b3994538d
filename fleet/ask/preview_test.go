package ask_test

import (
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet/ask"

	"github.com/musterfleet/muster/model"
)

// TestOf groups equal plans and lists nodes without a plan.
func TestOf(t *testing.T) {
	t.Parallel()
	const change = `{"phase": "done", "plan": {"counts": {"total": 1, "changed": 1}, "digest": "a"}}`
	const fails = `{"phase": "failed", "plan": {"counts": {"total": 1, "failed": 1}, "digest": "b"}}`
	var d ask.PreviewDecoder
	r := &ask.Ensured{Missing: []string{"gone"}, Unfinished: []string{"slow"}}
	for _, a := range []struct{ node, data string }{
		{"a", fails}, {"b", change}, {"c", change}, {"d", `{"phase": "done"}`}, {"e", `{"phase": "failed", "error": "no"}`},
		{"f", `{"phase": "expired"}`}, {"slow", `{"phase": "running"}`}, {"g", `{"phase": "done", "plan": {"inactive": "why"}}`},
		{"h", `{"phase": "done", "plan": {}}`},
	} {
		got, err := d.Decode([]byte(a.data))
		if err != nil {
			t.Fatal(err)
		}
		got.Node = a.node
		r.Answers = append(r.Answers, got)
	}
	p := ask.MergePreviews(r)
	var text []string
	for _, g := range p.Groups {
		text = append(text, string(g.Outcome)+" "+strings.Join(g.Nodes, ","))
	}
	want := "would change b,c|would fail a|not known d|not known e|not known f|would not run g|no change h"
	if got := strings.Join(text, "|"); got != want || p.OK() || p.WouldFail() != 4 {
		t.Errorf("got %s, %d would fail", got, p.WouldFail())
	}
	if p := ask.MergePreviews(&ask.Ensured{Answers: []model.EnsureResponse{r.Answers[1]}}); !p.OK() {
		t.Errorf("not OK: %+v", p)
	}
	if p := ask.MergePreviews(&ask.Ensured{}); p.OK() {
		t.Error("no answer is OK")
	}
}

// FuzzDecode: any answer is decoded or rejected.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"plan": {"counts": {}}}`))
	f.Add([]byte(`{"plan": 7}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		var d ask.PreviewDecoder
		if out, err := d.Decode(data); err == nil {
			ask.MergePreviews(&ask.Ensured{Answers: []model.EnsureResponse{out}})
		}
	})
}
