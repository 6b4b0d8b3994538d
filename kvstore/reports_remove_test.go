package kvstore_test

import (
	"errors"
	"testing"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestRemove removes the reports of one node and no others.
func TestReportsRemove(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	for _, node := range []string{"web01", "web02"} {
		for kind, outcome := range map[string]model.Outcome{model.KindRun: "stable", model.KindHealth: "ok"} {
			if err := kvtest.Publish(t.Context(), store, kvtest.Outgoing(node, kind, outcome, 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	stream := kvstore.NewReports(store.Store)
	if err := stream.Remove(t.Context(), "web01"); err != nil {
		t.Fatal(err)
	}
	left := map[string]int{}
	for r, err := range stream.Reports(t.Context(), model.ReportRange{}) {
		if err != nil {
			t.Fatal(err)
		}
		left[r.Node]++
	}
	if len(left) != 1 || left["web02"] != 2 {
		t.Errorf("left are %v", left)
	}
	if err := stream.Remove(t.Context(), ">"); !errors.Is(err, model.ErrInvalidName) {
		t.Errorf("an invalid name = %v", err)
	}
}
