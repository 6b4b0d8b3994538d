package provision_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestDashboardIsAViewer: it may publish nothing that a viewer may not, but pauses where actions
// are asked for.
func TestDashboardIsAViewer(t *testing.T) {
	t.Parallel()
	viewer, err := provision.ViewerPermissions("lab", "wall")
	if err != nil {
		t.Fatal(err)
	}
	for actions, want := range map[bool][]string{false: nil, true: {"$KV.LAB_CONTROL.*.*.pause"}} {
		p, err := provision.DashboardPermissions("lab", "wall", provision.Serving{Pauses: actions})
		more := slices.DeleteFunc(slices.Clone(p.Publish), func(subject string) bool { return slices.Contains(viewer.Publish, subject) })
		if err != nil || !slices.Equal(more, want) || !slices.Equal(p.Subscribe, viewer.Subscribe) || p.AllowResponses != nil {
			t.Errorf("actions %v: %+v, %v", actions, p, err)
		}
		if slices.ContainsFunc(p.Publish, func(subject string) bool { return subject == "fleet.API.DIRECT.GET.OBJ_LAB_BUNDLES" }) {
			t.Errorf("it reads bundles: %q", p.Publish)
		}
	}
	if _, err := provision.DashboardPermissions("", "a.b", provision.Serving{}); !errors.Is(err, model.ErrInvalidName) {
		t.Error(err)
	}
}

// TestDashboardWritesOnlyPauses: with actions it may pause and resume, and write nothing else.
func TestDashboardWritesOnlyPauses(t *testing.T) {
	t.Parallel()
	g := kvtest.ByConfig(t)
	nc := g.Connect(t, kvtest.Dashboard)
	nc.SetErrorHandler(nil)
	s := kvtest.BindTo(t, nc)
	bucket := kvstore.NewControl(s.Store).By("anna")
	for _, key := range []string{"group.all.pause", "node.web02.pause"} {
		if _, err := bucket.Put(t.Context(), key, []byte("x")); err != nil {
			t.Errorf("put of %s: %v", key, err)
		}
		if _, err := bucket.Delete(t.Context(), key, nil); err != nil {
			t.Errorf("delete of %s: %v", key, err)
		}
	}
	if all, _, err := bucket.Changes(t.Context(), 10); err != nil || len(all) != 4 || all[0].By != "anna" {
		t.Errorf("changes: %+v, %v", all, err)
	}
	if _, err := bucket.Get(t.Context(), "node.web02.pause"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	if _, err := g.Admin.Put(t.Context(), "group.web.audited", []byte("x")); err != nil {
		t.Error(err)
	}
	if all, _, err := s.Audit(t.Context(), 1); err != nil || len(all) != 1 || all[0].Key != "group.web.audited" {
		t.Errorf("assignments: %+v, %v", all, err)
	}
	_, labeled := bucket.Put(t.Context(), "node.web01.labels", []byte("x"))
	_, assigned := s.Put(t.Context(), "group.web.motd", []byte("x"))
	_, removed := s.Delete(t.Context(), "group.web.motd", nil)
	for what, err := range map[string]error{
		"label": labeled, "assignment": assigned, "removal": removed,
		"request": s.PutCommand(t.Context(), "group.web", "queued", nil, 0),
		"state":   s.PutState(t.Context(), model.NodeState{Node: "web01"}, 0),
	} {
		if !errors.Is(err, model.ErrNotPermitted) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
