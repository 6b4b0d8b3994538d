package kvstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// publish publishes the run of a node.
func publishRun(t *testing.T, store *kvtest.Store, node string, outcome model.Outcome) {
	t.Helper()
	if err := kvtest.Publish(t.Context(), store, kvtest.Outgoing(node, model.KindRun, outcome, 1)); err != nil {
		t.Fatal(err)
	}
}

// take reads as many messages as are wanted, each done, and returns their nodes.
func take(t *testing.T, store *kvtest.Store, sub model.ReportSubscription, want int) (nodes []string, last uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kvtest.Deadline)
	defer cancel()
	for d, err := range kvstore.NewReports(store.Store).Deliver(ctx, sub) {
		if err != nil {
			t.Fatalf("after %q: %v", nodes, err)
		}
		for _, r := range d.Reports {
			nodes = append(nodes, r.Node)
		}
		if err := d.Done(ctx); err != nil {
			t.Fatal(err)
		}
		if last = d.Sequence; len(nodes) >= want {
			break
		}
	}

	return nodes, last
}

// exists waits until a subscription reads.
func exists(t *testing.T, store *kvtest.Store, name string) {
	t.Helper()
	kvtest.Eventually(t, "the subscription is there", func() (bool, string) {
		_, err := store.JetStream().Consumer(t.Context(), "MUSTER_REPORTS", name)
		return err == nil, fmt.Sprint(err)
	})
}

func TestDeliver(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	sub := model.ReportSubscription{Name: "failed", Kinds: []string{model.KindRun}, Outcomes: []string{string(model.OutcomeFailed)}}
	publishRun(t, store, "old", model.OutcomeFailed)

	// It begins with reports stored from now on.
	got := make(chan []string)
	go func() {
		nodes, _ := take(t, store, sub, 1)
		got <- nodes
	}()
	exists(t, store, sub.Name)
	publishRun(t, store, "other", model.OutcomeStable)
	publishRun(t, store, "a", model.OutcomeFailed)
	if nodes := <-got; !slices.Equal(nodes, []string{"a"}) {
		t.Errorf("began with %q", nodes)
	}

	// Reports stored without a reader are delivered in order, whatever their headers.
	publishRun(t, store, "b", model.OutcomeFailed)
	srv.Raw(t, store.Names.Report("hostile", model.KindRun, "failed"), "NATS/1.0\r\nStatus: 404\r\n\r\n", "")
	publishRun(t, store, "c", model.OutcomeFailed)
	nodes, last := take(t, store, sub, 2)
	if !slices.Equal(nodes, []string{"b", "c"}) {
		t.Errorf("went on with %q", nodes)
	}

	// An unfinished report is delivered again, and no report before it.
	publishRun(t, store, "d", model.OutcomeFailed)
	publishRun(t, store, "e", model.OutcomeFailed)
	for d, err := range kvstore.NewReports(store.Store).Deliver(t.Context(), sub) {
		if err != nil || d.Reports[0].Node != "d" {
			t.Fatalf("%+v %v", d.StoredReports, err)
		}
		if err := d.Again(t.Context()); err != nil {
			t.Fatal(err)
		}
		break
	}
	if nodes, _ := take(t, store, sub, 2); !slices.Equal(nodes, []string{"d", "e"}) {
		t.Errorf("delivered again %q", nodes)
	}

	// If the server forgot the consumer, a new one continues after the last finished report, with other
	// subjects.
	if err := store.JetStream().DeleteConsumer(t.Context(), "MUSTER_REPORTS", sub.Name); err != nil {
		t.Fatal(err)
	}
	sub.After, sub.Outcomes = last, []string{string(model.OutcomeFailed), string(model.OutcomeStable)}
	publishRun(t, store, "f", model.OutcomeStable)
	if nodes, _ := take(t, store, sub, 3); !slices.Equal(nodes, []string{"d", "e", "f"}) {
		t.Errorf("created again: %q", nodes)
	}
	if nodes, _ := take(t, store, model.ReportSubscription{Name: "all", All: true}, 8); len(nodes) != 8 || nodes[0] != "old" {
		t.Errorf("all: %q", nodes)
	}
}

func TestInvalidSubscriptions(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	for _, sub := range []model.ReportSubscription{{}, {Name: "a.b"}, {Name: "*"}, {Name: "a", Kinds: []string{model.KindHealth}, Outcomes: []string{string(model.OutcomeChanged)}}, {Name: "a", Outcomes: []string{"red"}}} {
		if err := kvstore.NewReports(store.Store).CheckSubscription(sub); !errors.Is(err, model.ErrInvalidName) {
			t.Errorf("%+v: %v", sub, err)
		}
		for _, err := range kvstore.NewReports(store.Store).Deliver(t.Context(), sub) {
			if !errors.Is(err, model.ErrInvalidName) {
				t.Errorf("%+v: %v", sub, err)
			}
		}
	}
}
