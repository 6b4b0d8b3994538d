package chaos

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/musterfleet/muster/testing/hosttest"
)

// stateReadOnly denies the agent write access to the directories of its state. Root ignores such a denial.
func stateReadOnly(t *testing.T, r *rand.Rand) {
	srv, store := inProcess(t)
	w := prepare(t, r, 10, srv.URL(), store)
	w.runOrdinary()
	w.put()
	w.startAgent()
	w.judge()
	w.during(func() {
		w.pass(300 * time.Millisecond)
		w.chmodState(0o500)
		w.pass(time.Second)
		w.chmodState(0o700)
		w.pass(300 * time.Millisecond)
	})
	w.pardons.litter = true
	w.judge()
	w.agent.terminate()
	w.startAgent()
	w.pardons.litter = false
	w.judge()
	w.end()
}

// runOrdinary runs the agent as an ordinary user who owns all files.
func (w *world) runOrdinary() {
	w.t.Helper()
	w.uid, w.gid = hosttest.Ordinary()
	if os.Geteuid() != 0 {
		return
	}
	w.attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(w.uid), Gid: uint32(w.gid)}}
	// The program is where only its owner comes.
	text, err := os.ReadFile(os.Args[0])
	w.program = filepath.Join(w.root, "program")
	err = errors.Join(err, os.WriteFile(w.program, text, 0o755), os.Chmod(filepath.Dir(w.root), 0o755))
	for _, dir := range []string{w.root, w.dir, w.sub()} {
		err = errors.Join(err, os.Chown(dir, w.uid, w.gid))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// chmodState changes the mode of all directories of the state.
func (w *world) chmodState(mode os.FileMode) {
	w.t.Helper()
	err := filepath.WalkDir(w.state, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, mode)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}
