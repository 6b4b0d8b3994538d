package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/testing/hosttest"
)

// still are assignments that do not change.
type still map[string]model.Entry

func (still) SetGroups([]string) {}

func (still) Run(ctx context.Context, _ model.Memory, _ func([]string)) error {
	<-ctx.Done()
	return nil
}

func (s still) Entries() (map[string]model.Entry, model.Sync) {
	return s, model.Sync{At: time.Now()}
}

func (s still) Read(_ context.Context, key string, _ uint64) (model.Entry, error) { return s[key], nil }

func (still) Removal(context.Context, string) (model.Entry, error) {
	return model.Entry{}, model.ErrNotFound
}

// sink takes everything.
type sink struct{}

func (sink) PublishBatch(context.Context, []model.Report) error { return nil }

func (sink) PublishReports(_ context.Context, reports []model.Report) (int, error) {
	return len(reports), nil
}

func (sink) MaxMessage() int64 { return 0 }

func (sink) Register(context.Context, registration.Registration) error { return nil }

func (sink) GetBundle(context.Context, string) (io.ReadCloser, error) { return nil, model.ErrNotFound }

func (sink) PutState(context.Context, model.NodeState, time.Duration) error { return nil }

func (sink) State(context.Context, string) (model.Node, error) { return model.Node{}, nil }

func (sink) PutFacts(context.Context, string, model.Facts) error { return nil }

// benchAgent makes an agent with one manifest of n files in force and applied,
// and returns it with the key.
func benchAgent(b *testing.B, n int) (*Agent, string) {
	b.Helper()
	dir := b.TempDir()
	user, group := hosttest.Owner(b)
	var text strings.Builder
	text.WriteString("muster:\n  resources:\n    - file:\n")
	for i := range n {
		fmt.Fprintf(&text, "        - %s/f%d: {content: %q, owner: %q, group: %q, mode: \"0644\"}\n", dir, i, strings.Repeat("x", 200), user, group)
	}
	c := config.Default("bench")
	c.StateDir, c.FactsDir, c.ReadAllEvery = filepath.Join(dir, "state"), "", 0
	a, err := New(b.Context(), Options{
		Config: c, Host: host.New(host.Options{StateDir: c.StateDir}), Loader: manifest.NewLoader(manifest.Options{Types: resources.All()}),
		Assignments: still{"group.all.files": {Key: "group.all.files", Revision: 1, Value: []byte(text.String())}}, Publisher: sink{}, States: sink{}, Bundles: sink{}, Registry: sink{},
		Facts: func(context.Context, string) (model.Facts, string, []error) { return model.Facts{}, "none", nil },
		Log:   slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := a.outbox.Close(); err != nil {
			b.Error(err)
		}
	})
	entries, sync := a.loop.watch.Entries()
	a.loop.manifests.Sync(b.Context(), entries, sync)
	key := a.loop.manifests.View().Keys()[0]
	benchRun(b, a)
	if s := a.State().Manifests[key]; s.Outcome != model.OutcomeChanged {
		b.Fatalf("the first run: %+v", s)
	}

	return a, key
}

// benchRun runs the whole manifest as on its interval.
func benchRun(b *testing.B, a *Agent) {
	l := a.loop
	l.running.Lock()
	began := l.manifests.RunNext(b.Context(), b.Context(), time.Now().Add(2*a.Config().Interval.Std()))
	l.running.Unlock()
	l.running.Wait()
	if !began {
		b.Fatal("nothing is due")
	}
}

// BenchmarkAgentRerun is a stable run on the interval: lock, observation, summary, outbox with its fsync.
func BenchmarkAgentRerun5000(b *testing.B)  { benchmarkRerun(b, 5000) }
func BenchmarkAgentRerun20000(b *testing.B) { benchmarkRerun(b, 20000) }

func benchmarkRerun(b *testing.B, n int) {
	a, key := benchAgent(b, n)
	for b.Loop() {
		benchRun(b, a)
	}
	b.StopTimer()
	if s := a.State().Manifests[key]; s.Outcome != model.OutcomeStable || s.Counts.Stable != n {
		b.Fatalf("the last run: %+v", s)
	}
}

// BenchmarkAgentIdle reports the memory of an agent with one active manifest of 20 files.
func BenchmarkAgentIdle(b *testing.B) {
	benchAgent(b, 20)
	for b.Loop() {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapInuse)/(1<<20), "heap-MiB")
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		for line := range strings.Lines(string(status)) {
			var kb int
			if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kb); n == 1 {
				b.ReportMetric(float64(kb)/1024, "rss-MiB")
			}
		}
	}
}
