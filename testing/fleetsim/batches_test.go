package fleetsim_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/agent/simulate"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd"
	operator "github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/fleetsim"
	"github.com/musterfleet/muster/testing/kvtest"
)

// runRequest returns a run request to all nodes, in batches of a size such as 40%.
func runRequest(t *testing.T, store *kvtest.Store, id, size string, nodes []string, within time.Duration) *ask.Request {
	t.Helper()
	amount, err := ask.ParseAmount(size)
	if err != nil {
		t.Fatal(err)
	}
	run := model.RunRequest{Protocol: model.ProtocolRunRequest, ID: id, Expires: time.Now().Add(kvtest.Deadline)}

	return &ask.Request{
		ID: id, Targets: operator.Targets(nodes, nil, false), Batches: &ask.BatchLimits{Size: amount},
		Network: fleetcmd.RunAsker(store.Store, nil, slog.New(slog.DiscardHandler), model.Sender{}, run, within),
	}
}

// Simulated nodes are asked in batches, each once; asked again they execute nothing again, and
// the stream of reports has one result of each.
func TestBatchesLoseNothing(t *testing.T) {
	t.Parallel()
	const count = 25
	srv, store := kvtest.New(t)
	played := fleetsim.Simulate(t, connect.Options{Servers: []string{srv.URL()}}, fleetcmd.SimulateOptions{
		Plan: simulate.Plan{Nodes: count, Scenario: "stable", RunTime: time.Millisecond}, PerConnection: 8,
	})
	ctx, stop := context.WithTimeout(t.Context(), kvtest.Deadline)
	defer stop()
	request := runRequest(t, store, "batched", "40%", played.Names(), kvtest.Deadline)
	request.Silence = kvtest.Deadline
	for range 2 {
		asked := 0
		request.OnProgress = func(_ string, p ask.Progress) { asked = max(asked, p.Expected) }
		got, err := request.Send(ctx)
		if err != nil || !got.OK() || len(got.Answers) != count || len(got.NodeStates()) != count || asked != count*40/100 {
			t.Fatalf("%d at most were asked at a time, %d answered: %v, %v", asked, len(got.Answers), got.NodeStates(), err)
		}
	}
	results, reported := ask.NewResults("batched", model.ProtocolRunResponse, played.Names()), 0
	for r, err := range store.Reports(ctx, model.ReportRange{Kind: model.KindEnsure, Follow: true}) {
		if err != nil {
			t.Fatal(err, results.Progress())
		}
		reported++
		if _, isNew := results.Add(r); !isNew {
			t.Errorf("a second result of %s", r.Node)
		}
		if results.Complete() {
			break
		}
	}
	if got := results.Ensured(nil); !got.OK() || reported != count {
		t.Errorf("%d reported: %v", reported, got.NodeStates())
	}
}

// The server stops between two batches. The second batch waits for it and for the nodes, which reconnect
// seconds after the operator. A server that stays away ends the request, without nodes listed as unanswered.
func TestABatchWaitsForTheServer(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	played := fleetsim.Simulate(t, connect.Options{Servers: []string{srv.URL()}}, fleetcmd.SimulateOptions{
		Plan: simulate.Plan{Nodes: 10, Scenario: "stable", RunTime: time.Millisecond}, PerConnection: 2,
	})
	ctx, stop := context.WithTimeout(t.Context(), kvtest.Deadline)
	defer stop()
	send := func(within time.Duration, betweenBatches func()) (*ask.Ensured, error) {
		request := runRequest(t, store, "away", "50%", played.Names(), within)
		request.Batches.MaxFailures = new(ask.Amount)
		isStopped := false
		request.OnProgress = func(_ string, p ask.Progress) {
			if p.Finished < p.Expected || isStopped {
				return
			}
			isStopped = true
			srv.Stop()
			kvtest.Eventually(t, "the connection is lost", func() (bool, string) { return store.Away() != nil, "" })
			betweenBatches()
		}
		return request.Send(ctx)
	}
	var started sync.WaitGroup
	defer started.Wait()
	got, err := send(kvtest.Deadline, func() { started.Go(func() { srv.Start(t) }) })
	if err != nil || !got.OK() || len(got.Answers) != 10 {
		t.Errorf("states %v, %q, %v", got.NodeStates(), got.Stopped, err)
	}
	started.Wait()
	kvtest.Eventually(t, "the connection is back", func() (bool, string) { return store.Away() == nil, "" })
	got, err = send(time.Millisecond, func() {})
	if !errors.Is(err, nats.ErrDisconnected) || !strings.Contains(err.Error(), "batch 2 of 2 did not begin, not connected to NATS for 1ms") || len(got.NotAsked) != 5 || len(got.Missing) != 0 {
		t.Errorf("states %v, %v", got.NodeStates(), err)
	}
}
