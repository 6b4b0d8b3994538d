package kvstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestFullOfAssignments: a full bucket or queue refuses new values, names the remedy and loses no data. fleet
// init also adds missing limits. Nodes still store states and reports.
func TestFullOfAssignments(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	if _, err := store.Put(t.Context(), "group.web.first", []byte("first")); err != nil {
		t.Fatal(err)
	}
	bounded := provision.Options{ManifestBytes: 64 << 10, CommandBytes: 64 << 10}
	if _, err := store.Apply(t.Context(), bounded); err != nil {
		t.Fatal(err)
	}
	if left, err := store.Plan(t.Context(), provision.Options{}); err != nil || len(left) != 0 {
		t.Errorf("init without a choice lifts the bounds: %v, %v", left, err)
	}
	value := bytes.Repeat([]byte("x"), 8<<10)
	for flag, fill := range map[string]func(i int) error{
		"--manifest-size": func(i int) error {
			_, err := store.Put(t.Context(), fmt.Sprintf("group.web.m%d", i), value)
			return err
		},
		"--command-size": func(i int) error {
			return store.PutCommand(t.Context(), "group.web", fmt.Sprint(i), value, time.Hour)
		},
	} {
		var err error
		for i := 0; err == nil && i < 20; i++ {
			err = fill(i)
		}
		if !errors.Is(err, kvstore.ErrFull) || !strings.Contains(err.Error(), "muster fleet init "+flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	if e, err := store.Get(t.Context(), "group.web.first"); err != nil || string(e.Value) != "first" {
		t.Errorf("the first one is %q, %v", e.Value, err)
	}
	if _, err := store.PublishReports(t.Context(), []model.Report{kvtest.Outgoing("web01", model.KindRun, "stable", 1)}); err != nil {
		t.Error(err)
	}
	if err := store.PutState(t.Context(), model.NodeState{Node: "web01"}, time.Hour); err != nil {
		t.Error(err)
	}
	if _, err := store.Apply(t.Context(), provision.Options{ManifestBytes: 1 << 20, CommandBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(t.Context(), "group.web.more", value); err != nil {
		t.Error(err)
	}
	if _, err := store.Apply(t.Context(), bounded); !errors.Is(err, provision.ErrShrink) {
		t.Errorf("a lower bound: %v", err)
	}
}
