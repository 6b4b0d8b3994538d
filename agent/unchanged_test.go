package agent_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/hosttest"
)

// failing is a manifest of files without a directory. Each fails.
func (n *node) failing(count int) string {
	files := make([]string, 0, 2*count)
	for i := range count {
		files = append(files, fmt.Sprintf("nowhere/%04d", i), "x")
	}

	return n.manifest(files...)
}

// summary contains the unchanged results that a run did not report again.
type summary struct {
	RunID     string       `json:"run_id"`
	Counts    model.Counts `json:"counts"`
	Unchanged []struct {
		RunID        string `json:"run_id"`
		Transactions int    `json:"transactions"`
	} `json:"unchanged"`
}

// result returns the number of reported transactions and the last summary.
func (n *node) result() (transactions int, run summary) {
	n.t.Helper()
	for _, r := range n.take() {
		switch r.Kind {
		case model.KindTransaction:
			transactions++
		case model.KindRun:
			run = summary{}
			n.decode(r, &run)
		}
	}

	return transactions, run
}

// repeats fails unless the last run reported some transactions and left out those
// that another run reported.
func (n *node) repeats(transactions int, of string, unchanged int) summary {
	n.t.Helper()
	got, run := n.result()
	if got != transactions {
		n.t.Errorf("%d transactions were reported, want %d", got, transactions)
	}
	switch {
	case unchanged == 0 && len(run.Unchanged) == 0:
	case len(run.Unchanged) != 1 || run.Unchanged[0].RunID != of || run.Unchanged[0].Transactions != unchanged:
		n.t.Errorf("unchanged %+v, want %d of run %s", run.Unchanged, unchanged, of)
	}

	return run
}

// interval is more than the pause between two runs and less than that between three.
const interval = 6 * time.Minute

func TestFailuresThatAreTheSameAreReportedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.all.broken", n.failing(3))
		first := n.repeats(3, "", 0)
		for range 2 {
			n.after(interval)
			run := n.repeats(0, first.RunID, 3)
			if run.Counts.Failed != 3 {
				t.Errorf("counts %+v: a failure is one also when it is not reported again", run.Counts)
			}
		}
		states, _, _ := n.stream.stored()
		if s := states[len(states)-1].Manifests["group.all.broken"]; s.Outcome != model.OutcomeFailed || s.Counts.Failed != 3 || s.Error == "" {
			t.Errorf("the state of the node is %+v", s)
		}
	})
}

func TestNoopThatIsTheSameIsReportedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.all.motd", strings.Replace(n.manifest("motd", "x"), "{content", "{noop: true, content", 1))
		first := n.repeats(1, "", 0)
		n.after(interval)
		n.repeats(0, first.RunID, 1)
	})
}

func TestAChangedReasonIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		user, group := hosttest.Owner(t)
		script := n.path("why")
		must(t, os.WriteFile(script, []byte("#!/bin/sh\necho one >&2\nexit 1\n"), 0o755))
		n.start()
		n.bucket.put("group.all.broken", fmt.Sprintf("muster:\n  resources:\n    - exec:\n        - %s: {}\n    - file:\n        - %s: {content: x, owner: %q, group: %q, mode: \"0644\"}\n", script, n.path("nowhere/x"), user, group))
		first := n.repeats(2, "", 0)
		n.after(interval)
		n.repeats(0, first.RunID, 2)
		must(t, os.WriteFile(script, []byte("#!/bin/sh\necho two >&2\nexit 1\n"), 0o755))
		n.after(interval)
		n.repeats(1, first.RunID, 1)
	})
}

func TestWhatFailsAgainIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.all.broken", n.failing(1))
		n.repeats(1, "", 0)
		must(t, os.Mkdir(n.path("nowhere"), 0o755))
		n.after(interval)
		n.repeats(1, "", 0)
		must(t, os.RemoveAll(n.path("nowhere")))
		n.after(interval)
		n.repeats(1, "", 0)
	})
}

func TestANewRevisionIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.all.broken", n.failing(2))
		n.repeats(2, "", 0)
		n.bucket.put("group.all.broken", n.failing(2)+"\n")
		n.settle()
		n.repeats(2, "", 0)
	})
}

func TestAnotherSourceOfTheManifestIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.all.broken", n.failing(2))
		n.repeats(2, "", 0)
		n.bucket.put("group.web.broken", n.failing(2))
		n.repeats(2, "", 0)
		n.bucket.remove("group.web.broken") // back to the first, at the revision that was reported
		n.repeats(2, "", 0)
	})
}

func TestUnchangedResultsAreReportedAgainAfterADay(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.config.Interval = model.Duration(time.Hour)
		n.start()
		n.bucket.put("group.all.broken", n.failing(1))
		n.repeats(1, "", 0)
		n.after(23 * time.Hour)
		if got, run := n.result(); got != 0 || len(run.Unchanged) != 1 {
			t.Errorf("%d transactions within a day", got)
		}
		n.after(3 * time.Hour)
		if got, _ := n.result(); got != 1 {
			t.Errorf("%d transactions after a day, want 1", got)
		}
	})
}

func TestUnchangedResultsAreReportedAgainAfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.all.broken", n.failing(2))
		n.repeats(2, "", 0)
		n.stop()
		n.start()
		second := n.repeats(2, "", 0)
		n.after(interval)
		n.repeats(0, second.RunID, 2)
	})
}

// A result with a dropped report counts as unreported.
func TestUnchangedResultsAreReportedAgainAfterALoss(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		refused := false
		n.stream.mu.Lock()
		n.stream.refuse = func(r model.Report) bool {
			first := r.Kind == model.KindTransaction && !refused
			refused = refused || first
			return first
		}
		n.stream.mu.Unlock()
		n.bucket.put("group.all.broken", n.failing(2))
		n.repeats(1, "", 0)
		n.after(interval)
		n.repeats(2, "", 0)
	})
}

func TestTransactionsOfALargeRunTravelTogether(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.all.broken", n.failing(500))
		if got, run := n.result(); got != 500 || run.Counts.Failed != 500 {
			t.Errorf("%d transactions, %+v", got, run.Counts)
		}
		n.stream.batched(t, 200, 200, 50)
	})
}

func TestTransactionsOfASmallRunTravelAlone(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.all.broken", n.failing(50))
		n.repeats(50, "", 0)
		n.stream.batched(t)
	})
}

func TestABatchFitsIntoAMessage(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.stream.max = 64 << 10
		n.start()
		n.bucket.put("group.all.broken", n.failing(200))
		if got, _ := n.result(); got != 200 {
			t.Errorf("%d transactions", got)
		}
		n.stream.mu.Lock()
		defer n.stream.mu.Unlock()
		total := 0
		for _, count := range n.stream.batches {
			total += count
		}
		if total != 200-50 || len(n.stream.batches) < 4 {
			t.Errorf("batches of %v in messages of 64 KiB", n.stream.batches)
		}
	})
}

// The run continues, and its changes are reported.
func TestABatchOfALongRunIsNotKeptBack(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		s := newSlow(n)
		n.start()
		n.bucket.put("group.all.broken", n.failing(60)+"    - slow:\n        - wait1: {ensure: present}\n        - wait2: {ensure: present}\n")
		<-s.begun
		n.after(5 * time.Second)
		s.release <- struct{}{}
		<-s.begun
		n.after(3 * time.Second)
		if got, run := n.result(); got != 61 || run.RunID != "" {
			t.Errorf("%d transactions, run %+v", got, run)
		}
		n.stream.batched(t, 10)
		close(s.release)
		if got, run := n.result(); got != 1 || run.Counts.Total != 62 {
			t.Errorf("%d transactions at the end, run %+v", got, run)
		}
	})
}

func TestAnOutageInALongRunIsLoggedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		s := newSlow(n)
		n.start()
		n.bucket.put("group.all.broken", n.failing(51)+"    - slow:\n        - wait1: {ensure: present}\n        - wait2: {ensure: present}\n        - wait3: {ensure: present}\n")
		for range 2 {
			<-s.begun
			n.after(5 * time.Second)
			s.release <- struct{}{}
		}
		<-s.begun
		n.stream.setAway(true)
		n.after(time.Minute)
		close(s.release)
		n.after(time.Second)
		n.stream.setAway(false)
		n.after(10 * time.Minute)
		if got, _ := n.result(); got != 54 {
			t.Errorf("%d transactions", got)
		}
		n.stop()
		log := n.log.String()
		if failed, again := strings.Count(log, "cannot publish reports"), strings.Count(log, "publishing reports again"); failed != 1 || again != 1 {
			t.Errorf("%d times failed, %d times again", failed, again)
		}
	})
}

// What no server takes is dropped alone, not with its batch.
func TestOneOfABatchIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.stream.refuse = func(r model.Report) bool { return strings.Contains(string(r.Data), "nowhere/0070") }
		n.start()
		n.bucket.put("group.all.broken", n.failing(100))
		if got, _ := n.result(); got != 99 {
			t.Errorf("%d transactions, want 99", got)
		}
	})
}

// batched fails unless the batches had these reports.
func (s *stream) batched(t *testing.T, want ...int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if fmt.Sprint(s.batches) != fmt.Sprint(want) {
		t.Errorf("batches of %v reports, want %v", s.batches, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
