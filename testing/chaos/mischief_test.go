package chaos

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// during lets files drift and the manifest change at random moments, while a fault
// happens.
func (w *world) during(fault func()) {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	drifts, changes := w.choices(), w.choices()
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	all.Go(func() { w.repeat(ctx, drifts, 15*time.Millisecond, w.driftSome) })
	all.Go(func() {
		w.repeat(ctx, changes, 150*time.Millisecond, func(*rand.Rand) { w.tryPut(ctx) })
	})
	fault()
}

// choices returns random choices for one goroutine.
func (w *world) choices() *rand.Rand { return rand.New(rand.NewPCG(w.rand.Uint64(), 1)) }

// repeat calls f at random moments, less than most apart, until ctx ends.
func (w *world) repeat(ctx context.Context, r *rand.Rand, most time.Duration, f func(*rand.Rand)) {
	for {
		select {
		case <-time.After(time.Duration(r.Int64N(int64(most)))):
			f(r)
		case <-ctx.Done():
			return
		}
	}
}

// pass lets a random time pass, less than most: there is nothing to await in a random
// moment.
func (w *world) pass(most time.Duration) {
	<-time.After(time.Duration(w.rand.Int64N(int64(most))))
}

// driftSome changes a random file in a random way.
func (w *world) driftSome(r *rand.Rand) {
	w.driftOf(r, w.files[r.IntN(len(w.files))])
}

// driftOf changes one file.
func (w *world) driftOf(r *rand.Rand, path string) {
	w.raced.Store(true)
	var err error
	switch r.IntN(6) {
	case 0:
		err = overwrite(path, "drift")
	case 1:
		err = overwrite(path, "")
	case 2:
		err = os.Remove(path)
	case 3:
		err = os.Chmod(path, os.FileMode(r.IntN(0o200)|0o600))
	case 4:
		err = w.replace(path)
	case 5:
		if err = os.Remove(path); err == nil {
			err = os.Symlink(filepath.Join(w.root, "nowhere"), path)
		}
	}
	// The file or its directory is away, or the agent was faster.
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) && !errors.Is(err, unix.ELOOP) {
		w.t.Errorf("drift: %v", err)
	}
}

// overwrite writes into a file where it is.
func overwrite(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)

	return errors.Join(err, f.Close())
}

// replace renames another file onto a file in the current directory, whatever the directory's name is.
func (w *world) replace(path string) error {
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	const other = "other"
	if err := errors.Join(dir.WriteFile(other, []byte("another file"), 0o600), dir.Chown(other, w.uid, w.gid)); err != nil {
		return err
	}
	w.history.own(path, 1)
	if err := dir.Rename(other, filepath.Base(path)); err != nil {
		w.history.own(path, -1)
		return errors.Join(err, dir.Remove(other))
	}

	return nil
}
