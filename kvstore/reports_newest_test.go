package kvstore_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestNewest returns one report of each kind and outcome, newest first, and all of a batch, only of this
// node, also without permission to create consumers.
func TestNewest(t *testing.T) {
	t.Parallel()
	g := kvtest.ByConfig(t)
	began := time.Now()
	seq := uint64(0)
	put := func(node, kind string, outcome model.Outcome) {
		t.Helper()
		seq++
		r := kvtest.Outgoing(node, kind, outcome, seq)
		r.Time = began.Add(time.Duration(seq) * time.Second)
		if err := kvtest.Publish(t.Context(), g.Admin, r); err != nil {
			t.Fatal(err)
		}
	}
	put("web01", model.KindRun, model.OutcomeStable)
	put("web01", model.KindRun, model.OutcomeStable)
	put("web01", model.KindRun, model.OutcomeFailed)
	put("web02", model.KindRun, model.OutcomeChanged)
	if err := g.Admin.PublishBatch(t.Context(), transactions(t, 10, 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Admin.Conn.Request("muster.report.web01.node.started", []byte("garbage"), kvtest.Deadline); err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string]*kvtest.Store{"administrator": g.Admin, "viewer": kvtest.BindTo(t, g.Connect(t, kvtest.Viewer))} {
		all, err := kvstore.NewReports(store.Store).Newest(t.Context(), "web01")
		if !errors.Is(err, kvstore.ErrInvalidEvent) {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, r := range all {
			got = append(got, fmt.Sprint(r.Kind, " ", r.Outcome, " ", r.Seq))
		}
		slices.Sort(got[min(2, len(got)):]) // reports of the batch have nearly the same time
		if want := "[run failed 3 run stable 2 transaction changed 11 transaction failed 10]"; fmt.Sprint(got) != want {
			t.Errorf("%s: %v", name, got)
		}
		if none, err := kvstore.NewReports(store.Store).Newest(t.Context(), "web09"); err != nil || len(none) != 0 {
			t.Errorf("%s: of an unknown node: %v, %v", name, none, err)
		}
	}
	if _, err := kvstore.NewReports(g.Admin.Store).Newest(t.Context(), "*"); !errors.Is(err, model.ErrInvalidName) {
		t.Errorf("of all = %v", err)
	}
}
