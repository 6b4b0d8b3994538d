package apply_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/apply"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/typetest"
)

// TestContract takes an apply through the contract of types.
func TestContract(t *testing.T) {
	child := func(string) typetest.Properties { return typetest.Properties{"name": "child.yaml"} }
	typetest.Run(t, typetest.Config{
		Type: apply.New(apply.CCMManifest{}),
		Cases: []typetest.Case{
			{Name: "all stable", Properties: child, Children: model.Counts{Total: 3, Stable: 3}},
			{Name: "one changed", Properties: child, Children: model.Counts{Total: 3, Stable: 2, Changed: 1}, Repeats: true, Message: "Would have changed 1 of the 3 resources of the child manifest"},
			{Name: "one failed", Properties: child, Children: model.Counts{Total: 3, Changed: 2, Failed: 1}, Error: "1 of the 3 resources of the child manifest failed"},
			{Name: "one unmet", Properties: child, Children: model.Counts{Total: 2, Stable: 1, Skipped: 1, Unmet: 1}, Error: "1 of the 2 resources of the child manifest have unmet requirements"},
			{Name: "one skipped", Properties: child, Children: model.Counts{Total: 2, Stable: 1, Skipped: 1}},
			{Name: "nothing in it", Properties: child},
		},
		Lie: func(before resource.State, outcome resource.Outcome) (resource.Outcome, resource.State) {
			return resource.Outcome{}, before
		},
	})
}

// TestApplyManifest covers the tables "Provider behavior" of "Child Resource Inspection": what
// the provider says, and its "Provider Selection".
func TestApplyManifest(t *testing.T) {
	p := apply.CCMManifest{}
	if ok, priority, err := p.IsManageable(nil, nil); !ok || priority != 1 || err != nil || p.Name() != "ccmmanifest" {
		t.Error(ok, priority, err)
	}
	for _, c := range []struct {
		children        model.Counts
		level, err      string
		noop, childNoop bool
		changed         int
	}{
		{children: model.Counts{Total: 2, Stable: 2}, level: "level=INFO"},
		{children: model.Counts{Total: 2, Changed: 1, Stable: 1}, level: "level=WARN", changed: 1},
		{children: model.Counts{Total: 2, Changed: 1, Failed: 1}, level: "level=ERROR", err: "1 of the 2 resources of the child manifest failed", changed: 1},
		// A resource with noop: true changes nothing. In a noop run it reports its change.
		{children: model.Counts{Total: 2, Changed: 1, Noop: 1}, level: "level=INFO"},
		{children: model.Counts{Total: 2, Changed: 1, Noop: 1}, level: "level=WARN", noop: true, changed: 1},
		{children: model.Counts{Total: 2, Changed: 1, Noop: 1}, level: "level=WARN", childNoop: true, changed: 1},
	} {
		var log bytes.Buffer
		env := resource.Env{Log: slog.New(slog.NewTextHandler(&log, nil)), Children: c.children, Scope: resource.Scope{Noop: c.noop}}
		state, err := p.ApplyManifest(t.Context(), env, &apply.Spec{Common: model.Common{Name: "c", Noop: c.childNoop}})
		if state.Changed != c.changed || state.Resources != c.children.Total || !strings.Contains(log.String(), c.level) {
			t.Errorf("%+v: %+v %s", c, state, log.String())
		}
		if (err != nil) != (c.err != "") || (err != nil && err.Error() != c.err) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
