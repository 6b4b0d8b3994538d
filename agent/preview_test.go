package agent_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/testing/signtest"
)

// preview sends a preview of a value.
func (n *node) preview(id, name, value string) *answers {
	n.t.Helper()
	data, err := json.Marshal(model.PreviewRequest{Protocol: model.ProtocolPreviewRequest, ID: id, Name: name, Value: value, Expires: time.Now().Add(time.Minute)})
	if err != nil {
		n.t.Fatal(err)
	}

	return n.previewRaw(string(data))
}

func (n *node) previewRaw(data string) *answers {
	a := &answers{}
	n.agent.Previews().Preview(n.t.Context(), nil, []byte(data), a.respond)
	n.settle()

	return a
}

// TestPreviewChangesNothing: it answers with the plan and leaves no file, report, run, assignment or watch,
// beside an active assignment of the same name.
func TestPreviewChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.put("group.all.site", "motd", "one")
		n.settle()
		n.take()
		status, state := n.agent.Describe(), n.agent.State()
		a := n.preview("p1", "site", n.manifest("motd", "two", "issue", "new"))
		if a.phases() != "acknowledged running done" {
			t.Fatalf("answered %s: %s", a.phases(), a.last().Error)
		}
		plan := a.last().Plan
		if plan.Counts.Changed != 2 || plan.Counts.Noop != 2 || len(plan.Transactions) != 2 || plan.Digest == "" || plan.Cut || !plan.OK() {
			t.Errorf("plan %+v", plan)
		}
		if diff := plan.Transactions[0].Changes[0].Diff; !strings.Contains(diff, "-one") || !strings.Contains(diff, "+two") {
			t.Errorf("diff %s", diff)
		}
		if file := plan.Transactions[0].Source.File; file != "site" {
			t.Errorf("the place is in %s", file)
		}
		n.has("motd", "one")
		n.lacks("issue")
		n.tells()
		after, now := n.agent.Describe(), n.agent.State()
		after.At, now.At = status.At, state.At
		if !reflect.DeepEqual(status, after) || !reflect.DeepEqual(state.Manifests, now.Manifests) || now.Watches != state.Watches {
			t.Errorf("the status became %+v, the state %+v", after, now)
		}
		if left, err := filepath.Glob(filepath.Join(n.agent.Config().StateDir, "tmp", "*")); err != nil || len(left) > 0 {
			t.Errorf("%v is left, %v", left, err)
		}
		// A resource in its desired state is no change, and equal plans have equal digests.
		b, c := n.preview("p2", "site", n.manifest("motd", "one")), n.preview("p3", "other", n.manifest("motd", "one"))
		if p := b.last().Plan; len(p.Transactions) != 0 || p.Counts.Stable != 1 || p.Digest != c.last().Plan.Digest {
			t.Errorf("plans %+v and %+v", p, c.last().Plan)
		}
	})
}

// TestPreviewWouldFail: what the node would reject, and what would fail there, is its plan.
func TestPreviewWouldFail(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.put("group.all.site", "motd", "one")
		if err := os.Mkdir(n.path("taken"), 0o700); err != nil {
			t.Fatal(err)
		}
		n.take()
		for value, want := range map[string]string{
			n.manifest("taken", "x"):  "taken",
			n.manifest("motd", "two"): "would be rejected: other:",
			"ccm: {}\nresources: 7":   "would be rejected: other:",
			"protocol: io.muster.v1.assignment\nwhen: 1 == 2\nmanifest: '{}'":                  "inactive: its condition is false",
			"protocol: io.muster.v1.assignment\nbundle: " + model.DigestOf(nil):                "fetch bundle",
			"protocol: io.muster.v1.assignment\nexpires: 1999-01-01T00:00:00Z\nmanifest: '{}'": "inactive: it has expired",
		} {
			r := n.preview(model.DigestOf([]byte(value)), "other", value).last()
			said := r.Error
			if r.Plan != nil {
				said = strings.Join(r.Plan.Errors, " ")
				for _, tr := range r.Plan.Transactions {
					said += strings.Join(tr.Errors, " ")
				}
				if r.Plan.Inactive != "" {
					said = "inactive: " + r.Plan.Inactive
				}
			}
			if failed := r.Phase == model.EnsureFailed; !strings.Contains(said, want) || failed == strings.HasPrefix(want, "inactive") {
				t.Errorf("%s: %s, %q", value, r.Phase, said)
			}
		}
		n.tells()
	})
}

// TestPreviewsThatAreNotAccepted: none without an id, a name, or a near end; the same one again
// is answered, and made once.
func TestPreviewsThatAreNotAccepted(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		at := func(d time.Duration) string { return time.Now().Add(d).Format(time.RFC3339) }
		form := `{"protocol": "io.muster.v1.preview.request", "id": %q, "name": %q, "value": %q, "expires": %q}`
		for what, data := range map[string]string{
			"id":       fmt.Sprintf(form, "", "site", "{}", at(time.Minute)),
			"name":     fmt.Sprintf(form, "p", "a.b", "{}", at(time.Minute)),
			"end":      `{"protocol": "io.muster.v1.preview.request", "id": "p", "name": "site", "value": "{}"}`,
			"late":     fmt.Sprintf(form, "p", "site", "{}", at(-time.Minute)),
			"far":      fmt.Sprintf(form, "p", "site", "{}", at(2*time.Hour)),
			"protocol": `{"protocol": "io.muster.v1.run", "id": "p", "name": "site", "value": "{}"}`,
			"garbage":  "\x00[",
		} {
			if a := n.previewRaw(data); a.phases() != "failed" || a.last().Error == "" {
				t.Errorf("%s: answered %s", what, a.phases())
			}
		}
		n.preview("p1", "site", n.manifest("motd", "one"))
		again := n.preview("p1", "site", n.manifest("motd", "one"))
		if other := n.preview("p1", "site", n.manifest("motd", "two")); other.phases() != "failed" {
			t.Errorf("another one of the id: %s", other.phases())
		}
		if again.phases() != "done" {
			t.Errorf("again: %s", again.phases())
		}
	})
}

// TestPreviewIsBounded: a long plan is cut, and differs from another that is cut the same.
func TestPreviewIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		long := func(last string) string {
			var files []string
			for i := range 60 {
				files = append(files, fmt.Sprintf("f%02d", i), strings.Repeat(fmt.Sprintf("line %d\\n", i), 200)+last)
			}
			return n.manifest(files...)
		}
		a, b := n.preview("p1", "site", long("x")).last(), n.preview("p2", "site", long("y")).last()
		data, err := json.Marshal(a.Plan)
		if err != nil || len(data) > 64<<10 || !a.Plan.Cut || a.Plan.Counts.Changed != 60 {
			t.Errorf("%d bytes, cut %v, %+v, %v", len(data), a.Plan.Cut, a.Plan.Counts, err)
		}
		if a.Plan.Digest == b.Plan.Digest {
			t.Error("different plans have one digest")
		}
	})
}

// TestPreviewsAreSigned: where signatures are demanded, a preview needs its own, which is none
// of an ensure request, for this node, and fresh.
func TestPreviewsAreSigned(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		alice := signtest.Signer(t)
		n.trusts(1, alice)
		n.start()
		n.take()
		content, err := json.Marshal(model.PreviewRequest{Protocol: model.ProtocolPreviewRequest, ID: "p1", Name: "site", Value: n.manifest("motd", "new"), Expires: time.Now().Add(time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		sign := func(change func(*signed.Statement)) string {
			s := signed.Statement{Fleet: "muster", Action: signed.Preview, Target: "group.all", Content: string(content), Issued: time.Now(), Expires: time.Now().Add(time.Minute)}
			change(&s)

			return string(signtest.Sign(t, s, alice))
		}
		for what, data := range map[string]string{
			"unsigned":  string(content),
			"an ensure": sign(func(s *signed.Statement) { s.Action = signed.Ensure }),
			"elsewhere": sign(func(s *signed.Statement) { s.Target = "node.other" }),
			"old": sign(func(s *signed.Statement) {
				s.Issued, s.Expires = s.Issued.Add(-time.Hour), s.Issued.Add(-time.Minute*30)
			}),
		} {
			if a := n.previewRaw(data); a.phases() != "failed" || a.last().Plan != nil {
				t.Errorf("%s: answered %s", what, a.phases())
			}
		}
		if a := n.previewRaw(sign(func(*signed.Statement) {})); a.phases() != "acknowledged running done" {
			t.Errorf("answered %s: %s", a.phases(), a.last().Error)
		}
		n.lacks("motd")
	})
}
