package kill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/cmd/muster/agentcmd"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/testing/kvtest"
)

// resourceCount is how many resources fail in a run of TestBatches.
const resourceCount = 700

// agentDir and agentServer are what the agent that TestBatches kills runs with.
const (
	agentDir    = "MUSTER_TEST_AGENT"
	agentServer = "MUSTER_TEST_SERVER"
)

// runAgent runs an agent until it is killed.
func runAgent(dir, server string) error {
	ctx := context.Background()
	c := config.Default("web01")
	c.StateDir, c.FactsDir, c.NATS.Servers = filepath.Join(dir, "state"), filepath.Join(dir, "facts"), []string{server}
	n, err := agentcmd.NewNode(ctx, c, agentcmd.NodeOptions{Types: resources.All(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer n.Close()

	return n.Run(ctx, ctx)
}

// TestBatches kills an agent after each of the batches of a run that fails, again and
// again: in the end the stream has every report of the node, and each once.
func TestBatches(t *testing.T) {
	t.Parallel()
	const kills = 6
	srv, store := kvtest.New(t)
	dir := t.TempDir()
	var manifest strings.Builder
	manifest.WriteString("muster:\n  resources:\n    - file:\n")
	for i := range resourceCount {
		fmt.Fprintf(&manifest, "        - %s/nowhere/%04d: {content: x, owner: '%d', group: '%d', mode: '0644'}\n", dir, i, os.Geteuid(), os.Getegid())
	}
	if _, err := store.Put(t.Context(), "node.web01.broken", []byte(manifest.String())); err != nil {
		t.Fatal(err)
	}
	events, err := srv.Connect(t).SubscribeSync("muster.report.web01.>")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for round := range kills + 1 {
		var complaint bytes.Buffer
		c := exec.CommandContext(t.Context(), self)
		c.Env, c.Stderr = append(os.Environ(), agentDir+"="+dir, agentServer+"="+srv.URL()), &complaint
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		// The last one lives until its run is reported, with all before it.
		last := round == kills
		for batches := 0; ; {
			m, err := events.NextMsg(kvtest.Deadline)
			if err != nil {
				t.Fatalf("%v\n%s", err, complaint.String())
			}
			if strings.HasSuffix(m.Subject, ".transaction."+kvstore.BatchOutcome) {
				batches++
			}
			// What failed is tried again after a second, also beside a run that takes longer.
			whole := strings.HasSuffix(m.Subject, ".run.failed") && !bytes.Contains(m.Data, []byte(`"cause":"drift"`))
			if !last && batches > round%4 || last && whole {
				break
			}
		}
		if err := errors.Join(c.Process.Kill(), ignoreExit(c.Wait())); err != nil {
			t.Fatal(err)
		}
	}
	checkStream(t, store)
}

// ignoreExit drops the error of a process that was killed.
func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}

	return err
}

// checkStream fails unless the stream has the reports of the node in their order,
// each of them once.
func checkStream(t *testing.T, store *kvtest.Store) {
	t.Helper()
	var count uint64
	failed := map[string]int{}
	var runs []string
	for r, err := range kvstore.NewReports(store.Store).Reports(t.Context(), model.ReportRange{}) {
		if err != nil {
			t.Fatal(err)
		}
		if count++; r.Seq != count {
			t.Fatalf("report %d of the stream has seq %d (%s %s of run %s)", count, r.Seq, r.Kind, r.Outcome, r.RunID)
		}
		if r.Kind == model.KindRun {
			runs = append(runs, string(r.Data))
		}
		if r.Kind == model.KindTransaction && r.Outcome == model.OutcomeFailed {
			failed[r.RunID]++
		}
	}
	complete := 0
	for _, n := range failed {
		if n == resourceCount {
			complete++
		}
	}
	if complete == 0 {
		t.Errorf("no run is complete: %v\n%s", failed, strings.Join(runs, "\n"))
	}
}
