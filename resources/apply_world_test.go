package resources_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
)

// world is a directory of manifests. Tests run its root.yaml on this machine. $DIR in the manifests is the
// directory, and outputs contain $DIR again. Files with content or source belong to the user who runs the
// tests.
type world struct {
	t    *testing.T
	dir  string
	host *host.Host
	log  bytes.Buffer
	txs  map[string]*model.Transaction
	done []string
	// in and opts may be changed before a run.
	in   manifest.Inputs
	opts engine.Options
	ctx  context.Context // of the runs that stoppable is for
}

func newWorld(t *testing.T, archive string) *world {
	dir, err := os.MkdirTemp("", "muster-apply-") // the path of a test may contain a comma
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := &world{t: t, dir: dir, host: hosttest.New(t)}
	for _, f := range txtar.Parse([]byte(archive)).Files {
		w.write(f.Name, string(f.Data))
	}
	w.in = manifest.Inputs{Dir: w.dir, Facts: model.Facts{"os": "debian"}}
	w.opts = engine.Options{Identity: engine.Identity{Manifest: "root.yaml", Cause: model.CauseCommand}, Full: true, Journal: engine.NewFileJournal(w.host, filepath.Join(w.dir, "state"), "root.yaml")}

	return w
}

// stoppable lets the next runs finish the change in hand when stop is called.
func (w *world) stoppable() (stop func()) {
	w.ctx, stop = context.WithCancel(w.t.Context())

	return stop
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	own := fmt.Sprintf(`{owner: "%d", group: "%d", mode: "0644", `, os.Geteuid(), os.Getegid())
	text = strings.NewReplacer("$DIR", w.dir, "{content:", own+"content:", "{source:", own+"source:").Replace(text)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// read gives a file, empty when it is not there.
func (w *world) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(w.dir, name))

	return string(text)
}

func (w *world) short(text string) string { return strings.ReplaceAll(text, w.dir+"/", "") }

// resolve returns what root.yaml resolves to, as muster apply does.
func (w *world) resolve() (*manifest.Resolved, error) {
	w.t.Helper()
	loader := manifest.NewLoader(manifest.Options{Types: resources.All()})
	doc, err := manifest.Parse(filepath.Join(w.dir, "root.yaml"), []byte(w.read("root.yaml")))
	if err != nil {
		return nil, err
	}

	return loader.Resolve(w.t.Context(), doc, w.in)
}

// run runs root.yaml, and returns the result of each resource, a line each.
func (w *world) run() []string {
	w.t.Helper()
	resolved, err := w.resolve()
	if err != nil {
		w.t.Fatal(w.short(err.Error()))
	}

	return w.runResolved(resolved)
}

func (w *world) runResolved(resolved *manifest.Resolved) []string {
	w.t.Helper()
	g, err := plan.Build(resolved.Resources, w.in.Known)
	if err != nil {
		w.t.Fatal(w.short(err.Error()))
	}
	opts := w.opts
	opts.Secrets, opts.FailOnError = resolved.Secrets, resolved.FailOnError
	opts.Env = resource.Env{Host: w.host, Facts: w.in.Facts, Log: slog.New(slog.NewTextHandler(&w.log, nil)), Scope: resource.Scope{Noop: w.opts.Env.Scope.Noop, HealthCheckOnly: w.opts.Env.Scope.HealthCheckOnly, Dir: w.dir, Author: w.in.Author}}
	w.txs, w.done = map[string]*model.Transaction{}, nil
	opts.OnTransaction = func(tx *model.Transaction) {
		ref := w.short(tx.Ref().String())
		w.txs[ref] = tx
		w.done = append(w.done, ref+" "+string(tx.Outcome()))
		engine.LogTransaction(w.t.Context(), slog.New(slog.NewTextHandler(&w.log, nil)), tx)
	}
	ctx := w.t.Context()
	if w.ctx != nil {
		ctx, opts.Grace = w.ctx, engine.GracePeriod(time.Minute)
	}
	if _, err := engine.Reconcile(ctx, g, engine.ReconcileOptions{Options: opts}); err != nil {
		w.t.Fatal(err)
	}

	return w.done
}

// problems are the problems of root.yaml, one per line.
func (w *world) problems() []string {
	w.t.Helper()
	resolved, err := w.resolve()
	if err == nil {
		w.t.Fatalf("it is valid: %v", resolved.Resources)
	}

	return strings.Split(w.short(err.Error()), "\n")
}

func (w *world) wants(got []string, want ...string) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Fatalf("got\n  %s\nwant\n  %s\nlog\n%s", strings.Join(got, "\n  "), strings.Join(want, "\n  "), w.short(w.log.String()))
	}
}

// fails checks the error of a resource.
func (w *world) fails(ref, says string) {
	w.t.Helper()
	tx := w.txs[ref]
	if tx == nil || !strings.Contains(w.short(strings.Join(tx.Errors, "; ")), says) {
		w.t.Fatalf("%s: %+v, without %q", ref, tx, says)
	}
}

// logs checks that a line of the log has all of parts.
func (w *world) logs(parts ...string) {
	w.t.Helper()
	for line := range strings.Lines(w.log.String()) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			return
		}
	}
	w.t.Fatalf("no line with %q in\n%s", parts, w.log.String())
}

// stopping is a journal that stops the run at the first pending refresh.
type stopping struct {
	engine.Journal
	after string
	stop  func()
}

// Add stops the run once, after the change in hand.
func (s *stopping) Add(ctx context.Context, to ...model.Ref) error {
	if s.stop != nil && slices.ContainsFunc(to, func(ref model.Ref) bool { return ref.String() == s.after }) {
		s.stop()
		s.stop = nil
	}

	return s.Journal.Add(ctx, to...)
}
