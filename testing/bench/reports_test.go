package bench

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/cmd/muster/agentcmd"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/testing/kvtest"
)

// BenchmarkReports runs an agent against a server and measures what the stream of
// reports stores for its first run of a manifest, and for each run after it.
func BenchmarkReports(b *testing.B) {
	for _, outcome := range []string{"stable", "failed", "noop"} {
		for _, n := range []int{1, 100, 3000} {
			b.Run(fmt.Sprintf("%s/%d", outcome, n), func(b *testing.B) {
				for b.Loop() {
					measureReports(b, outcome, n)
				}
			})
		}
	}
}

// measureReports reports messages and bytes of the stream, a run.
func measureReports(b *testing.B, outcome string, n int) {
	b.Helper()
	const repeats = 3
	srv, store := kvtest.New(b)
	dir := b.TempDir()
	ctx, stop := context.WithTimeout(b.Context(), 5*time.Minute)
	defer stop()
	events, err := srv.Connect(b).SubscribeSync("muster.report.web01.run.*")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := store.Put(ctx, "node.web01.site", []byte(reportedManifest(dir, outcome, n))); err != nil {
		b.Fatal(err)
	}
	c := config.Default("web01")
	c.StateDir, c.FactsDir, c.NATS.Servers = filepath.Join(dir, "state"), filepath.Join(dir, "facts"), []string{srv.URL()}
	c.Interval = model.Duration(2 * time.Second)
	node, err := agentcmd.NewNode(ctx, c, agentcmd.NodeOptions{Types: resources.All(), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		b.Fatal(err)
	}
	defer node.Close()
	running, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- node.Run(running, running) }()
	first := stored(b, ctx, store, events, outcome)
	second := stored(b, ctx, store, events, outcome)
	last := second
	for range repeats {
		last = stored(b, ctx, store, events, outcome)
	}
	end()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(first.messages), "first-msgs")
	b.ReportMetric(float64(first.bytes), "first-B")
	b.ReportMetric(float64(last.messages-second.messages)/repeats, "msgs/run")
	b.ReportMetric(float64(last.bytes-second.bytes)/repeats, "B/run")
}

// reportedManifest returns a manifest of n files with an outcome.
func reportedManifest(dir, outcome string, n int) string {
	below, noop := dir, ""
	switch outcome {
	case "failed":
		below = filepath.Join(dir, "nowhere")
	case "noop":
		noop = ", noop: true"
	}
	var m strings.Builder
	m.WriteString("muster:\n  resources:\n    - file:\n")
	for i := range n {
		fmt.Fprintf(&m, "        - %s/file%05d: {content: %q, owner: '%d', group: '%d', mode: '0644'%s}\n", below, i, strings.Repeat("x", contentSize), os.Geteuid(), os.Getegid(), noop)
	}

	return m.String()
}

// size is what a stream has.
type size struct{ messages, bytes uint64 }

// stored waits for the next summary of an outcome and returns what the stream has then.
func stored(b *testing.B, ctx context.Context, store *kvtest.Store, events *nats.Subscription, outcome string) size {
	b.Helper()
	m, err := events.NextMsgWithContext(ctx)
	if err != nil {
		b.Fatal(err)
	}
	if got := m.Subject[strings.LastIndex(m.Subject, ".")+1:]; got != outcome && got != "changed" {
		b.Fatalf("%s: %s", m.Subject, m.Data)
	}
	stream, err := store.JetStream().Stream(ctx, "MUSTER_REPORTS")
	if err != nil {
		b.Fatal(err)
	}
	info, err := stream.Info(ctx)
	if err != nil {
		b.Fatal(err)
	}

	return size{info.State.Msgs, info.State.Bytes}
}
