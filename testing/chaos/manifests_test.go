package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const badKey = "node.web01.bad"

// typePanics assigns a manifest with a type that panics somewhere.
func typePanics(t *testing.T, r *rand.Rand) {
	srv, store := inProcess(t)
	w := newWorld(t, r, 10, srv.URL(), store)
	at := []string{"status", "plan", "apply"}[r.IntN(3)]
	w.during(func() {
		w.assign(badKey, fmt.Sprintf("  resources:\n  - exploding:\n    - any: {at: %s}\n", at))
		w.pass(time.Second)
	})
	w.pardons.failing[badKey] = true
	w.judge()
	w.unassign(badKey)
	delete(w.pardons.failing, badKey)
	w.judge()
	w.end()
}

// neverEnds assigns a manifest with an endless command. Its timeout or the agent's end stops it.
func neverEnds(t *testing.T, r *rand.Rand) {
	srv, store := inProcess(t)
	w := newWorld(t, r, 10, srv.URL(), store)
	w.during(func() {
		w.assign(badKey, fmt.Sprintf("  resources:\n  - exec:\n    - hang: {command: 'sleep 100000 & sleep 100000', provider: shell, timeout: 1s, creates: %s/nowhere}\n", w.root))
		w.pass(time.Second)
	})
	w.pardons.failing[badKey], w.others = true, 1
	w.judge()
	w.assign(badKey, fmt.Sprintf("  resources:\n  - exec:\n    - hang: {command: sleep 100000, timeout: 1h, creates: %s/nowhere}\n", w.root))
	w.during(func() { w.pass(time.Second) })
	w.unassign(badKey)
	delete(w.pardons.failing, badKey)
	w.others = 0
	w.agent.terminate()
	w.startAgent()
	w.judge()
	w.end()
}

// stateDeleted assigns a manifest that deletes the state directory of its agent, which is
// started again some time later.
func stateDeleted(t *testing.T, r *rand.Rand) {
	srv, store := inProcess(t)
	w := newWorld(t, r, 10, srv.URL(), store)
	w.during(func() {
		once := filepath.Join(w.root, "once")
		w.assign(badKey, fmt.Sprintf("  resources:\n  - exec:\n    - rm: {command: 'touch %s && rm -rf %s', provider: shell, creates: %s}\n", once, w.state, once))
		w.awaitPath(once)
		w.pass(time.Second)
		w.unassign(badKey)
	})
	await(t, "all files are in their desired state without it", judge{w}.checkFiles)
	w.agent.terminate()
	w.pardons.newStates++
	w.startAgent()
	w.judge()
	w.end()
}

func (w *world) awaitPath(path string) {
	w.t.Helper()
	await(w.t, path+" is there", func() error {
		_, err := os.Lstat(path)
		return err
	})
}
