package kill

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/model"
)

// victimDir names the directory of the process that TestOutbox kills.
const victimDir = "MUSTER_TEST_OUTBOX"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		err := victim(dir)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	if dir := os.Getenv(agentDir); dir != "" {
		fmt.Fprintln(os.Stderr, runAgent(dir, os.Getenv(agentServer)))
		os.Exit(3)
	}
	os.Exit(m.Run())
}

// deed is what the victim did, a line of its output: appended, published, or
// acknowledged up to a seq.
type deed struct {
	Appended, Acked uint64
	Published       *model.Report
}

func open(dir string) (*reporting.Outbox, error) {
	return reporting.OpenOutbox(reporting.OutboxOptions{Dir: dir, MaxBytes: 256 << 10, Log: slog.New(slog.DiscardHandler), Dropped: func(lost reporting.Lost) model.Report {
		doc, _ := json.Marshal(lost)
		return model.Report{ID: ksuid.New().String(), Kind: model.KindNode, Outcome: "dropped", Data: doc}
	}})
}

// report returns reports of some sizes, a third of them summaries of stable runs.
func report(i int) model.Report {
	doc, _ := json.Marshal(strings.Repeat("x", 100*i))
	if i%3 == 0 {
		return model.Report{Kind: model.KindRun, Outcome: model.OutcomeStable, Data: doc}
	}

	return model.Report{Kind: model.KindTransaction, Outcome: model.OutcomeChanged, Data: doc}
}

// victim appends faster than it publishes, so it also drops reports, until it is killed. It prints each
// finished step: published, then acknowledged.
func victim(dir string) error {
	out := json.NewEncoder(os.Stdout)
	b, err := open(dir)
	if err != nil {
		return err
	}
	for round := 0; ; round++ {
		for i := range 12 {
			seq, err := b.Append(report(i))
			if err == nil {
				err = out.Encode(deed{Appended: seq})
			}
			if err != nil {
				return err
			}
		}
		if err := b.Sync(); err != nil {
			return err
		}
		if round%10 < 3 {
			continue
		}
		batch := b.Next(9)
		for _, r := range batch {
			if err := out.Encode(deed{Published: &r}); err != nil {
				return err
			}
		}
		if err := b.Ack(batch[len(batch)-1].Seq); err != nil {
			return err
		}
		if err := out.Encode(deed{Acked: batch[len(batch)-1].Seq}); err != nil {
			return err
		}
	}
}

// TestOutbox kills a process that appends, publishes and drops, again and again, and
// then publishes the rest: each report that Append took is published or covered by
// one event, and none is published again once it is acknowledged.
func TestOutbox(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a := account{published: map[uint64]bool{}, events: map[string]string{}, dropped: map[uint64]string{}}
	for range 40 {
		var complaint strings.Builder
		c := exec.CommandContext(t.Context(), self)
		c.Env, c.Stderr = append(os.Environ(), victimDir+"="+dir), &complaint
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		enough := a.acks + 1 + rand.IntN(10)
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				break // it was killed, perhaps in the middle of a line
			}
			var d deed
			if err := json.Unmarshal(line, &d); err != nil {
				t.Fatal(err)
			}
			a.take(t, d)
			if d.Acked > 0 && a.acks == enough {
				time.AfterFunc(rand.N(5*time.Millisecond), func() { _ = c.Process.Kill() })
			}
		}
		if err := c.Wait(); c.ProcessState.ExitCode() != -1 {
			t.Fatalf("the victim ended by itself: %v\n%s", err, complaint.String())
		}
	}
	b, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for batch := b.Next(50); len(batch) > 0; batch = b.Next(50) {
		for _, r := range batch {
			a.take(t, deed{Published: &r})
		}
		if err := b.Ack(batch[len(batch)-1].Seq); err != nil {
			t.Fatal(err)
		}
	}
	a.check(t)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// account contains the fate of the reports.
type account struct {
	appended, acked uint64
	acks            int
	published       map[uint64]bool
	// events are the documents by id, dropped the id of the event that covers a seq.
	events  map[string]string
	dropped map[uint64]string
}

func (a *account) take(t *testing.T, d deed) {
	t.Helper()
	a.appended = max(a.appended, d.Appended)
	if d.Acked > 0 {
		a.acked, a.acks = max(a.acked, d.Acked), a.acks+1
	}
	switch r := d.Published; {
	case r == nil:
	case r.Outcome == "dropped":
		a.event(t, r)
	default:
		if r.Seq <= a.acked {
			t.Errorf("report %d is published after %d is acknowledged", r.Seq, a.acked)
		}
		a.published[r.Seq] = true
	}
}

func (a *account) event(t *testing.T, r *model.Report) {
	t.Helper()
	if before, ok := a.events[r.ID]; ok && before != string(r.Data) {
		t.Errorf("event %s differs when it comes again", r.ID)
	}
	a.events[r.ID] = string(r.Data)
	var lost reporting.Lost
	if err := json.Unmarshal(r.Data, &lost); err != nil {
		t.Fatal(err)
	}
	for _, in := range lost.Ranges {
		for seq := in.From; seq <= in.To; seq++ {
			if id := a.dropped[seq]; id != "" && id != r.ID {
				t.Errorf("report %d is covered by two events", seq)
			}
			a.dropped[seq] = r.ID
		}
	}
}

func (a *account) check(t *testing.T) {
	t.Helper()
	both := 0
	for seq := uint64(1); seq <= a.appended; seq++ {
		switch {
		case !a.published[seq] && a.dropped[seq] == "":
			t.Errorf("report %d of %d is lost", seq, a.appended)
		case a.published[seq] && a.dropped[seq] != "":
			both++ // published, and dropped before the next process could acknowledge it
		}
	}
	if a.acks < 40 || len(a.events) < 2 || len(a.dropped) < 100 || both > 40*9 {
		t.Errorf("%d acknowledgements, %d events, %d dropped, %d of them published too", a.acks, len(a.events), len(a.dropped), both)
	}
}
