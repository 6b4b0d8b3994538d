package provision_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// onJoinedGuards runs a test on each way to guard a server that has an account for operators.
func onJoinedGuards(t *testing.T, test func(t *testing.T, g kvtest.Guarded)) {
	t.Helper()
	all := kvtest.Guards()
	delete(all, "one account")
	for name, start := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

func TestViewerSeesTheFleet(t *testing.T) {
	t.Parallel()
	onJoinedGuards(t, func(t *testing.T, g kvtest.Guarded) {
		populate(t, g)
		for _, who := range []string{kvtest.Viewer, kvtest.Operator} {
			sees(t, kvtest.BindTo(t, g.Connect(t, who)), who)
		}
	})
}

// populate puts what the operators look at.
func populate(t *testing.T, g kvtest.Guarded) {
	t.Helper()
	for _, key := range []string{"group.web.motd", "group.db.motd", "group.all.motd", "node.web01.motd", "group.web.motd"} {
		if _, err := g.Admin.Put(t.Context(), key, []byte(key+time.Now().String())); err != nil {
			t.Fatal(err)
		}
	}
	for node := range kvtest.GroupsOf {
		if err := g.Admin.PutState(t.Context(), model.NodeState{Node: node}, time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := kvtest.Publish(t.Context(), g.Admin, kvtest.Outgoing(node, model.KindRun, "stable", 1)); err != nil {
			t.Fatal(err)
		}
	}
}

func sees(t *testing.T, s *kvtest.Store, who string) {
	t.Helper()
	listed, err := s.List(t.Context())
	var keys []string
	for _, e := range listed {
		keys = append(keys, e.Key)
	}
	if want := []string{"group.all.motd", "group.db.motd", "group.web.motd", "node.web01.motd"}; err != nil || !slices.Equal(keys, want) {
		t.Errorf("%s lists %q, %v", who, keys, err)
	}
	if history, err := s.History(t.Context(), "group.web.motd"); err != nil || len(history) != 2 {
		t.Errorf("%s: history = %v, %v", who, history, err)
	}
	if nodes, err := s.Nodes(t.Context()); err != nil || len(nodes) != 2 {
		t.Errorf("%s: nodes = %v, %v", who, nodes, err)
	}
	for _, f := range []model.ReportRange{{}, {Since: time.Now().Add(-time.Hour)}, {Outcome: "stable"}} {
		count := 0
		for _, err := range s.Reports(t.Context(), f) {
			if count++; err != nil {
				t.Errorf("%s: reports: %v", who, err)
			}
		}
		if count != 2 {
			t.Errorf("%s: %d reports of %+v", who, count, f)
		}
	}
}

// A report that arrives later is seen by who follows.
func TestViewerFollowsReports(t *testing.T) {
	t.Parallel()
	g := kvtest.ByConfig(t)
	s := kvtest.BindTo(t, g.Connect(t, kvtest.Viewer))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	count := 0
	for _, since := range []time.Time{{}, time.Now().Add(-time.Minute)} {
		if err := kvtest.Publish(t.Context(), g.Admin, kvtest.Outgoing("web01", model.KindRun, "stable", uint64(2*count+1))); err != nil {
			t.Fatal(err)
		}
		seen := 0
		for r, err := range s.Reports(ctx, model.ReportRange{Since: since, Follow: true, Node: "web01"}) {
			if err != nil {
				t.Fatal(err)
			}
			if seen++; seen == 1 {
				if err := kvtest.Publish(t.Context(), g.Admin, kvtest.Outgoing("web01", model.KindRun, "changed", uint64(2*count+2))); err != nil {
					t.Fatal(err)
				}
			}
			if r.Outcome == "changed" && seen > count+1 {
				break
			}
		}
		count = seen
	}
}

// An operator of a group has its nodes do things, and no others.
func TestOperatorOfAGroup(t *testing.T) {
	t.Parallel()
	onJoinedGuards(t, func(t *testing.T, g kvtest.Guarded) {
		s := kvtest.BindTo(t, g.Connect(t, kvtest.Operator))
		if _, err := s.Put(t.Context(), "group.web.motd", []byte("of the operator")); err != nil {
			t.Error(err)
		}
		if _, err := s.Delete(t.Context(), "group.web.motd", nil); err != nil {
			t.Error(err)
		}
		if err := s.PutCommand(t.Context(), "group.web", "queued", nil, time.Hour); err != nil {
			t.Error(err)
		}
		if _, err := kvstore.NewControl(s.Store).Put(t.Context(), "group.web.pause", []byte("of the operator")); err != nil {
			t.Error(err)
		}
		if e, err := kvstore.NewControl(s.Store).Get(t.Context(), "group.web.pause"); err != nil || string(e.Value) != "of the operator" {
			t.Errorf("pause = %s, %v", e.Value, err)
		}
		if _, err := kvstore.NewControl(s.Store).Delete(t.Context(), "group.web.pause", nil); err != nil {
			t.Error(err)
		}
		for _, key := range []string{"group.db.pause", "group.all.pause", "node.web01.pause", "node.web02.pause", "node.web02.labels", "node.web01.groups", "node.web02.groups"} {
			if _, err := kvstore.NewControl(trespassing(t, g, kvtest.Operator).Store).Put(t.Context(), key, []byte("x")); !errors.Is(err, model.ErrNotPermitted) {
				t.Errorf("put of %s = %v", key, err)
			}
		}
		for _, err := range kvtest.Ask(t.Context(), s, s.Names.Request(kvstore.VerbEnsure, "group.web"), nil) {
			if !errors.Is(err, requests.ErrNobody) {
				t.Errorf("asked: %v", err)
			}
		}
		for _, key := range []string{"group.db.motd", "group.all.motd", "node.web02.motd", "node.web01.motd"} {
			_, err := trespassing(t, g, kvtest.Operator).Put(t.Context(), key, []byte("x"))
			if !errors.Is(err, model.ErrNotPermitted) {
				t.Errorf("put of %s = %v", key, err)
			}
		}
	})
}

// trespassing returns the store of a user who tries forbidden actions, on a new connection.
func trespassing(t *testing.T, g kvtest.Guarded, user string) *kvtest.Store {
	t.Helper()
	nc := g.Connect(t, user)
	nc.SetErrorHandler(nil)

	return kvtest.Must(t, func() (*kvtest.Store, error) { return kvtest.Of(nc, "") })
}

// A rollup would remove assignments of others.
func TestOperatorCannotRemoveWhatIsAssignedToOthers(t *testing.T) {
	t.Parallel()
	g := kvtest.ByConfig(t)
	populate(t, g)
	nc := g.Connect(t, kvtest.Operator)
	for _, rollup := range []string{"all", "sub"} {
		for _, subject := range []string{"$KV.MUSTER_MANIFESTS.group.web.motd", "$KV.MUSTER_CONTROL.group.web.pause"} {
			m := &nats.Msg{Subject: subject, Header: nats.Header{"Nats-Rollup": {rollup}}, Data: []byte("x")}
			if reply, err := nc.RequestMsg(m, kvtest.Deadline); err != nil || !bytes.Contains(reply.Data, []byte("rollup not permitted")) {
				t.Errorf("rollup %s of %s = %s, %v", rollup, subject, reply.Data, err)
			}
		}
	}
	if listed, err := g.Admin.List(t.Context()); err != nil || len(listed) != 4 {
		t.Errorf("%d left, %v", len(listed), err)
	}
}

func TestRolesAreRendered(t *testing.T) {
	t.Parallel()
	viewer, err := provision.ViewerPermissions("lab", "joe")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range viewer.Publish {
		if !slices.ContainsFunc([]string{"STREAM.LIST", "STREAM.INFO.", "DIRECT.GET."}, func(read string) bool { return strings.HasPrefix(s, "fleet.API."+read) }) {
			t.Errorf("a viewer may publish %s", s)
		}
	}
	if viewer.AllowResponses != nil || !slices.Equal(viewer.Subscribe, []string{"_INBOX_joe.>"}) {
		t.Errorf("viewer = %+v", viewer)
	}
	for name, of := range map[string]func() (provision.Permissions, error){
		"no group": func() (provision.Permissions, error) { return provision.OperatorPermissions("", "joe", nil, nil) },
		"all": func() (provision.Permissions, error) {
			return provision.OperatorPermissions("", "joe", []string{"web", "all"}, nil)
		},
		"group *": func() (provision.Permissions, error) {
			return provision.OperatorPermissions("", "joe", []string{"*"}, nil)
		},
		"node >": func() (provision.Permissions, error) {
			return provision.OperatorPermissions("", "joe", nil, []string{">"})
		},
		"name":      func() (provision.Permissions, error) { return provision.ViewerPermissions("", "a.b") },
		"prefix":    func() (provision.Permissions, error) { return provision.ViewerPermissions("Big", "joe") },
		"_INBOX of": func() (provision.Permissions, error) { return provision.ViewerPermissions("", "_x") },
	} {
		if _, err := of(); !errors.Is(err, model.ErrInvalidName) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOnlyAdministratorsForgetNodes: operators and viewers remove neither data nor reports of nodes.
func TestOnlyAdministratorsForgetNodes(t *testing.T) {
	t.Parallel()
	onJoinedGuards(t, func(t *testing.T, g kvtest.Guarded) {
		if err := g.Admin.PutState(t.Context(), model.NodeState{Node: "web01"}, 0); err != nil {
			t.Fatal(err)
		}
		if err := kvtest.Publish(t.Context(), g.Admin, kvtest.Outgoing("web01", model.KindRun, "stable", 1)); err != nil {
			t.Fatal(err)
		}
		for _, user := range []string{kvtest.Operator, kvtest.Viewer} {
			for what, remove := range map[string]func(*kvtest.Store) error{
				"state":   func(s *kvtest.Store) error { return kvstore.NewNodes(s.Store).Remove(t.Context(), "web01") },
				"reports": func(s *kvtest.Store) error { return kvstore.NewReports(s.Store).Remove(t.Context(), "web01") },
			} {
				if err := remove(trespassing(t, g, user)); err == nil {
					t.Errorf("%s removed the %s", user, what)
				}
			}
		}
		if all, err := g.Admin.Nodes(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("nodes %v, %v", all, err)
		}
		if left, err := kvstore.NewReports(g.Admin.Store).Newest(t.Context(), "web01"); err != nil || len(left) != 1 {
			t.Errorf("reports %v, %v", left, err)
		}
	})
}
