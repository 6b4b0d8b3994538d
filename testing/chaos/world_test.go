package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/kvtest"
)

const (
	node    = "web01"
	siteKey = "node.web01.site"
)

// world is a node with its agent, its files, and the server that it is assigned them by.
type world struct {
	t    *testing.T
	rand *rand.Rand
	// root has it all: the files in dir and in dir/sub, the mark, the state.
	root, dir, mark, state string
	files                  []string
	url                    string
	store                  *kvtest.Store
	history                *history
	agent                  *process
	started                time.Time
	log                    hosttest.LogText
	// program is the command line of the agent, with attributes; the files belong to its user.
	program  string
	attr     *syscall.SysProcAttr
	uid, gid int

	// version is the version of the newest manifest in the bucket. doubt marks that a put failed or seemed to
	// fail.
	version atomic.Int64
	doubt   atomic.Bool
	// stored is the revision of the last put that was confirmed.
	stored atomic.Uint64
	// raced marks that files drift during their repair.
	raced atomic.Bool

	// watches are how many watches of inotify the agent may have, zero for those that the
	// machine has.
	watches int
	// others are how many resources of other manifests are watched.
	others int
	// pardons are what the fault of the test excuses.
	pardons pardons
	// usual is what an agent at rest has open.
	usual holdings
}

// pardons are what the judge accepts, because the fault takes it.
type pardons struct {
	// kills is how often the agent was killed: each may take the report of a repair, and
	// the summary of a run.
	kills int
	// dropped permits dropped reports, which the agent must report.
	dropped bool
	// disorder permits reports out of order, as after a change of the leader or a lost connection. Readers
	// order them by seq.
	disorder bool
	// litter permits temporary files in the state until the next start, when they cannot be removed.
	litter bool
	// newStates is how often the state directory was lost, and with it the count of reports.
	newStates int
	// failing are the manifests that must have failed.
	failing map[string]bool
}

// newWorld returns a world with some files and a settled agent.
func newWorld(t *testing.T, r *rand.Rand, files int, url string, store *kvtest.Store) *world {
	t.Helper()
	w := prepare(t, r, files, url, store)
	w.put()
	w.startAgent()
	w.judge()
	w.usual = judge{w}.open()
	// Open since the first run that had nothing to do, such as one after an outage.
	w.usual.descriptors["/state/outbox/.stable.log"] = 1

	return w
}

// prepare is newWorld without an agent.
func prepare(t *testing.T, r *rand.Rand, files int, url string, store *kvtest.Store) *world {
	t.Helper()
	root := t.TempDir()
	w := &world{
		t: t, rand: r, root: root, dir: filepath.Join(root, "files"), mark: filepath.Join(root, "mark"), state: filepath.Join(root, "state"), url: url, store: store,
		program: os.Args[0], uid: os.Geteuid(), gid: os.Getegid(),
	}
	w.pardons.failing = map[string]bool{}
	if err := os.MkdirAll(w.sub(), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range files {
		dir := w.dir
		if i%2 == 1 {
			dir = w.sub()
		}
		w.files = append(w.files, filepath.Join(dir, fmt.Sprintf("%05d", i)))
	}
	w.history = watchHistory(t, w.dir, w.sub())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the agent's log:\n%s", tail(w.log.String()))
		}
	})

	return w
}

// sub is a directory of half of the files.
func (w *world) sub() string { return filepath.Join(w.dir, "sub") }

// contentOf returns what a file has by a version of the manifest: each version changes some.
func contentOf(version int64, i int) string {
	return fmt.Sprintf("file %d since version %d\n", i, version-version%int64(i%5+1))
}

// manifest returns a version of the manifest, with its number in the first line. A command
// follows the first file.
func (w *world) manifest(version int64) string {
	var m strings.Builder
	fmt.Fprintf(&m, "# %d\nmuster:\n  flapping: off\n  resources:\n  - file:\n    - defaults: {owner: '%d', group: '%d', mode: '0644', poll: 5s}\n", version, w.uid, w.gid)
	for i, path := range w.files {
		fmt.Fprintf(&m, "    - %s: {content: %q}\n", path, contentOf(version, i))
	}
	fmt.Fprintf(&m, "  - exec:\n    - follow: {command: touch %s, refresh_only: true, subscribe: ['file#%s']}\n", w.mark, w.files[0])

	return m.String()
}

// tryPut puts another version, as long as that does not take long.
func (w *world) tryPut(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	if err := w.putVersion(ctx, w.version.Add(1)); err != nil {
		w.doubt.Store(true)
	}
}

// put puts another version.
func (w *world) put() {
	w.t.Helper()
	version := w.version.Add(1)
	await(w.t, "the manifest is put", func() error {
		ctx, stop := context.WithTimeout(w.t.Context(), 10*time.Second)
		defer stop()
		return w.putVersion(ctx, version)
	})
	w.doubt.Store(false)
}

func (w *world) putVersion(ctx context.Context, version int64) error {
	revision, err := w.store.Put(ctx, siteKey, []byte(w.manifest(version)))
	if err == nil {
		w.stored.Store(revision)
	}

	return err
}

// assign puts a manifest under another key.
func (w *world) assign(key, text string) {
	w.t.Helper()
	if _, err := w.store.Put(w.t.Context(), key, []byte("muster:\n"+text)); err != nil {
		w.t.Fatal(err)
	}
}

// unassign removes one.
func (w *world) unassign(key string) {
	w.t.Helper()
	if _, err := w.store.Delete(w.t.Context(), key, nil); err != nil {
		w.t.Fatal(err)
	}
}

// startAgent starts the agent; it runs only at its interval if nothing wakes it.
func (w *world) startAgent() {
	w.t.Helper()
	config := filepath.Join(w.root, "agent.yaml")
	text := fmt.Sprintf("node: %s\nstate_dir: %s\nfacts_dir: %s\ninterval: 1h\nshutdown_timeout: 2s\nlog: {level: debug}\nnats: {servers: [%s]}\n", node, w.state, filepath.Join(w.root, "facts"), w.url)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	w.started = time.Now()
	env := []string{agentRole + "=" + config, goroutinesFile + "=" + w.goroutines()}
	if w.watches > 0 {
		env = append(env, fmt.Sprintf("%s=%d", mostWatches, w.watches))
	}
	w.agent = start(w.t, &w.log, w.program, w.attr, env...)
}

// killAgent kills the agent.
func (w *world) killAgent() {
	w.agent.kill()
	w.pardons.kills++
}

func (w *world) goroutines() string { return filepath.Join(w.root, "goroutines") }
