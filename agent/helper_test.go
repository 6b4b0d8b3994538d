package agent_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/runner"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

func TestMain(m *testing.M) {
	natstest.PrepareBubbles()
	os.Exit(m.Run())
}

// bucket is the bucket of a node's assignments: a real one, unless a test needs a failing one.
type bucket interface {
	agent.Assignments
	put(key, value string) (revision uint64)
	remove(key string)
}

// natsBucket is a bucket on a nats-server.
type natsBucket struct {
	*watch.Watch
	t     *testing.T
	store *kvtest.Store
}

func (b *natsBucket) put(key, value string) uint64 {
	b.t.Helper()
	revision, err := b.store.Put(b.t.Context(), key, []byte(value))
	if err != nil {
		b.t.Fatal(err)
	}

	return revision
}

func (b *natsBucket) remove(key string) {
	b.t.Helper()
	if _, err := b.store.Delete(b.t.Context(), key, nil); err != nil {
		b.t.Fatal(err)
	}
}

// memoryBucket is a bucket in memory whose answers the test controls.
type memoryBucket struct {
	mu       sync.Mutex
	revision uint64
	entries  map[string]model.Entry
	sync     model.Sync
	wake     func([]string)
	groups   []string
}

// injected makes the bucket of a node one in memory.
func (n *node) injected() *memoryBucket {
	b := &memoryBucket{entries: map[string]model.Entry{}, sync: model.Sync{At: time.Now()}}
	n.bucket = b

	return b
}

func (b *memoryBucket) Run(ctx context.Context, _ model.Memory, wake func([]string)) error {
	b.mu.Lock()
	b.wake = wake
	b.mu.Unlock()
	wake(nil)
	<-ctx.Done()

	return nil
}

func (b *memoryBucket) Entries() (map[string]model.Entry, model.Sync) {
	b.mu.Lock()
	defer b.mu.Unlock()

	keys := maps.Clone(b.entries)
	for key, e := range keys {
		e.Value = nil
		keys[key] = e
	}

	return keys, b.sync
}

func (b *memoryBucket) Read(_ context.Context, key string, _ uint64) (model.Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.entries[key]
	if !ok {
		return e, model.ErrNotFound
	}

	return e, nil
}

func (b *memoryBucket) Removal(context.Context, string) (model.Entry, error) {
	return model.Entry{}, model.ErrNotFound
}

func (b *memoryBucket) SetGroups(groups []string) { b.change(func() { b.groups = groups }) }

func (b *memoryBucket) change(f func()) {
	b.mu.Lock()
	f()
	wake := b.wake
	b.mu.Unlock()
	if wake != nil {
		wake(nil)
	}
}

func (b *memoryBucket) put(key, value string) (revision uint64) {
	b.change(func() {
		b.revision++
		revision = b.revision
		b.entries[key] = model.Entry{Key: key, Revision: revision, Value: []byte(value)}
	})

	return revision
}

func (b *memoryBucket) remove(key string) { b.change(func() { delete(b.entries, key) }) }

var errAway = errors.New("NATS is away")

// stream is a stream of reports and a store of states in memory, which can be away.
type stream struct {
	mu      sync.Mutex
	away    bool
	refuse  func(model.Report) bool
	max     int64
	reports []model.Report
	// batches are how many reports each batch had.
	batches []int
	ids     map[string]bool
	states  []model.NodeState
	facts   []model.Facts
	noFacts error
	ttl     time.Duration
	// heard is when the last state was stored, by the server's clock, which is ahead.
	heard time.Time
	ahead time.Duration
}

func newStream() *stream { return &stream{ids: map[string]bool{}} }

func (s *stream) PublishReports(_ context.Context, reports []model.Report) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return 0, errAway
	}
	for i, r := range reports {
		if s.refuse != nil && s.refuse(r) {
			return i, fmt.Errorf("%w: too large", model.ErrUndeliverable)
		}
		if !s.ids[r.ID] {
			s.ids[r.ID] = true
			s.reports = append(s.reports, r)
		}
	}

	return len(reports), nil
}

func (s *stream) PublishBatch(ctx context.Context, reports []model.Report) error {
	if data, err := json.Marshal(reports); err != nil || s.max > 0 && int64(len(data)) > s.max {
		return fmt.Errorf("%w: %d bytes, %v", model.ErrUndeliverable, len(data), err)
	}
	if _, err := s.PublishReports(ctx, reports); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, len(reports))

	return nil
}

func (s *stream) MaxMessage() int64 { return s.max }

func (s *stream) PutState(_ context.Context, state model.NodeState, ttl time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return errAway
	}
	s.states, s.ttl, s.heard = append(s.states, state), ttl, time.Now().Add(s.ahead)

	return nil
}

func (s *stream) State(context.Context, string) (model.Node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away || len(s.states) == 0 {
		return model.Node{}, errAway
	}

	return model.Node{NodeState: s.states[len(s.states)-1], Heard: s.heard}, nil
}

func (s *stream) PutFacts(_ context.Context, _ string, facts model.Facts) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away || s.noFacts != nil {
		return cmp.Or(s.noFacts, errAway)
	}
	s.facts = append(s.facts, facts)

	return nil
}

func (s *stream) setAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// stored gives the states and facts that were stored, and how long a state stands.
func (s *stream) stored() ([]model.NodeState, []model.Facts, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Clone(s.states), slices.Clone(s.facts), s.ttl
}

// node is an agent under test with all that is around it.
type node struct {
	checker  engine.Checker
	registry runner.Registry
	t        *testing.T
	dir      string // where the manifests write
	state    string
	bucket   bucket
	nats     *kvtest.Store
	stream   *stream
	config   agent.Config
	types    resource.Types
	clock    *status.Clock
	outside  outside
	// machine reports events of watched paths; nil: no watches.
	machine *machine
	// resolved counts how often a manifest was resolved.
	resolved int
	// controlled permits values of operators about the node.
	controlled bool
	// held, when set, holds the resolving of requests until it is closed.
	held chan struct{}
	log  hosttest.LogText
	// change, when set, changes the options of the agent.
	change func(*agent.Options)

	host  *host.Host
	agent *agent.Agent
	stop  func()
	// breakOff ends the change in hand too.
	breakOff context.CancelCauseFunc
}

// outside is what manifests depend on, which tests change while the agent runs.
type outside struct {
	mu         sync.Mutex
	kv         func() ([]byte, error)
	facts      func() model.Facts
	factErrors []error
	// bundles are by digest.
	bundles map[string][]byte
	// bundleTakes is how long it takes to open one.
	bundleTakes time.Duration
}

func (o *outside) setBundle(digest string, data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bundles[digest] = data
}

func (o *outside) setBundleTakes(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bundleTakes = d
}

func (o *outside) GetBundle(ctx context.Context, digest string) (io.ReadCloser, error) {
	o.mu.Lock()
	takes := o.bundleTakes
	o.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	b, ok := o.bundles[digest]
	if !ok {
		// As the store says it.
		return nil, fmt.Errorf("bundle %s: read $O.MUSTER_BUNDLES.M.%s of OBJ_MUSTER_BUNDLES: %w", digest, base64.URLEncoding.EncodeToString([]byte(digest)), errAway)
	}

	return io.NopCloser(bytes.NewReader(b)), nil
}

func (o *outside) setKV(value string, err error) {
	o.setKVFunc(func() ([]byte, error) { return []byte(value), err })
}

func (o *outside) setKVFunc(get func() ([]byte, error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kv = get
}

func (o *outside) setFacts(f func() model.Facts) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.facts = f
}

func (o *outside) getKV(context.Context, string, string) ([]byte, error) {
	o.mu.Lock()
	get := o.kv
	o.mu.Unlock()

	return get()
}

func (o *outside) getFacts(context.Context, string) (model.Facts, []error) {
	o.mu.Lock()
	defer o.mu.Unlock()

	return o.facts(), o.factErrors
}

// newNode makes a node; start starts it.
func newNode(t *testing.T) *node {
	t.Helper()
	dir := t.TempDir()
	n := &node{t: t, registry: &directory{}, dir: filepath.Join(dir, "root"), state: filepath.Join(dir, "state"), stream: newStream(), types: resources.All()}
	if err := os.Mkdir(n.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	n.config = config.Default("web01.example.net")
	n.config.StateDir = n.state
	n.config.FactsDir = ""
	n.config.Groups = []string{"web", "prod"}
	n.outside.setFacts(func() model.Facts { return model.Facts{"role": "web"} })
	n.outside.setKV("", errAway)
	n.outside.bundles = map[string][]byte{}

	return n
}

func (n *node) options() agent.Options {
	n.host = host.New(host.Options{StateDir: n.state})
	if _, onNATS := n.bucket.(*natsBucket); onNATS {
		n.bucket = &natsBucket{t: n.t, store: n.nats, Watch: watch.New(n.nats.Store, watch.Options{
			Node: n.config.Node, Groups: n.config.Groups, Log: slog.New(slog.DiscardHandler), Rand: func() float64 { return 0 }, // no jitter
		})}
	}
	o := agent.Options{
		Config: n.config, Version: "1.2.3", Host: n.host,
		Loader:  countingLoader{manifest.NewLoader(manifest.Options{Types: n.types, KV: desired.ObserveKV(n.outside.getKV)}), &n.resolved, n.held},
		Checker: n.checker, Registry: n.registry,
		Assignments: n.bucket, Bundles: &n.outside, Publisher: n.stream, States: n.stream, Clock: n.clock,
		Facts: func(ctx context.Context, dir string) (model.Facts, string, []error) {
			f, failed := n.outside.getFacts(ctx, dir)
			b, _ := json.Marshal(f)
			return f, string(b), failed
		},
		Log: slog.New(slog.NewTextHandler(io.MultiWriter(&n.log, logWriter{n.t}), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if n.controlled {
		o.Control = watch.NewControl(n.nats.Store, watch.Options{Node: n.config.Node, Groups: n.config.Groups, Log: slog.New(slog.DiscardHandler), Rand: func() float64 { return 0 }})
	}
	if n.machine != nil {
		o.Watch, o.Writers = n.machine.arm, n.machine.listen
	}
	if n.change != nil {
		n.change(&o)
	}

	return o
}

// countingLoader counts how often it resolves a manifest, and may hold requests.
type countingLoader struct {
	*manifest.Loader
	resolved *int
	held     chan struct{}
}

func (l countingLoader) ResolveOne(ctx context.Context, typ string, properties document.Value, in manifest.Inputs) (*manifest.Resolved, error) {
	if l.held != nil {
		<-l.held
	}

	return l.Loader.ResolveOne(ctx, typ, properties, in)
}

func (l countingLoader) Resolve(ctx context.Context, doc *manifest.Document, in manifest.Inputs) (*manifest.Resolved, error) {
	*l.resolved++

	return l.Loader.Resolve(ctx, doc, in)
}

type logWriter struct{ t *testing.T }

func (w logWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimRight(string(b), "\n"))

	return len(b), nil
}

func (n *node) start() {
	n.t.Helper()
	a, err := agent.New(n.t.Context(), n.options())
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(n.t.Context())
	hard, breakOff := context.WithCancelCause(n.t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, hard) }()
	n.agent, n.breakOff = a, breakOff
	n.stop = func() {
		n.t.Helper()
		cancel()
		if err := <-done; err != nil {
			n.t.Errorf("the agent ended with %v", err)
		}
		n.stop = func() {}
	}
	n.settle()
}

// settle waits until the agent is idle.
func (n *node) settle() { synctest.Wait() }

// after lets time pass.
func (n *node) after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// put puts a manifest of files, name and content in turn, all below the node's
// directory.
func (n *node) put(key string, files ...string) uint64 {
	revision := n.bucket.put(key, n.manifest(files...))
	n.settle()

	return revision
}

func (n *node) manifest(files ...string) string {
	user, group := hosttest.Owner(n.t)
	var b strings.Builder
	b.WriteString("muster:\n  resources:\n    - file:\n")
	for i := 0; i < len(files); i += 2 {
		fmt.Fprintf(&b, "        - %s: {content: %q, owner: %q, group: %q, mode: \"0644\"}\n", n.path(files[i]), files[i+1], user, group)
	}

	return b.String()
}

func (n *node) path(name string) string { return filepath.Join(n.dir, name) }

// has fails unless a file has a content.
func (n *node) has(name, want string) {
	n.t.Helper()
	got, err := os.ReadFile(n.path(name))
	if err != nil || string(got) != want {
		n.t.Errorf("%s holds %q (%v), want %q", name, got, err, want)
	}
}

func (n *node) lacks(name string) {
	n.t.Helper()
	if _, err := os.Lstat(n.path(name)); err == nil {
		n.t.Errorf("%s is there", name)
	}
}

// told returns the reports as text, without start and stop of the node, and clears them.
func (n *node) told() []string {
	n.t.Helper()
	var out []string
	for _, r := range n.take() {
		word := r.Kind + " " + string(r.Outcome)
		switch r.Kind {
		case model.KindTransaction:
			var t model.Transaction
			n.decode(r, &t)
			word += " " + strings.Replace(t.Ref().String(), n.dir+"/", "", 1)
		case model.KindRun:
			word += " " + r.Manifest + " " + string(r.Cause)
		case model.KindNode:
			if r.Outcome == "started" || r.Outcome == "stopped" {
				continue
			}
		}
		out = append(out, word)
	}

	return out
}

// take gives the reports that came since, by seq.
func (n *node) take() []model.Report {
	n.settle()
	n.stream.mu.Lock()
	defer n.stream.mu.Unlock()
	out := n.stream.reports
	n.stream.reports = nil
	if !slices.IsSortedFunc(out, func(a, b model.Report) int { return cmp.Compare(a.Seq, b.Seq) }) {
		n.t.Errorf("reports are not in order")
	}

	return out
}

func (n *node) decode(r model.Report, v any) {
	n.t.Helper()
	if err := json.Unmarshal(r.Data, v); err != nil {
		n.t.Fatalf("%s: %v", r.Data, err)
	}
}

// tells fails the test unless the reports equal these.
func (n *node) tells(want ...string) {
	n.t.Helper()
	if got := n.told(); !slices.Equal(got, want) {
		n.t.Errorf("reported\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// lastRun gives the last run report, and forgets all.
func (n *node) lastRun() model.Run {
	n.t.Helper()
	var run model.Run
	found := false
	for _, r := range n.take() {
		if r.Kind == model.KindRun {
			run, found = model.Run{}, true
			n.decode(r, &run)
		}
	}
	if !found {
		n.t.Fatal("no run was reported")
	}

	return run
}

// bubble runs a test with a fake clock.
func bubble(t *testing.T, f func(t *testing.T, n *node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.stop = func() {}
		var stopNATS func()
		_, n.nats, stopNATS = kvtest.InBubble(t)
		n.bucket = &natsBucket{t: t, store: n.nats}
		defer stopNATS()
		defer func() { n.stop() }()
		f(t, n)
	})
}
