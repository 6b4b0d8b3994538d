package manifest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/musterfleet/muster/resources/resource"
)

// setDynamic notes that something other than the document and data went in.
func (w *world) setDynamic() {
	w.mu.Lock()
	w.dynamic = true
	w.mu.Unlock()
}

// readFile is the function readFile. A file that an earlier resource of the
// manifest makes has to wait for it, so while nothing is running it is late.
func (w *world) readFile(path string, running bool) (string, error) {
	w.setDynamic()
	if err := w.elsewhere(path); err != nil {
		return "", err
	}
	if !filepath.IsAbs(path) {
		if w.dir == "" {
			return "", withHint(fmt.Errorf("%q is relative, and this manifest has no directory", path), "deliver manifest and files as a bundle, or give an absolute path")
		}
		path = filepath.Join(w.dir, path)
	}
	path = filepath.Clean(path)
	if running {
		return readRegular(path, w.opts.MaxBytes)
	}
	if ref, ok := w.provided[resource.PathNeed(path)]; ok {
		return "", lateError{ref: ref}
	}

	return w.cached("file:"+path, func() (string, error) { return readRegular(path, w.opts.MaxBytes) })
}

// cached remembers what a key stands for, so that it is the same in the whole document.
func (w *world) cached(key string, get func() (string, error)) (string, error) {
	w.mu.Lock()
	v, have := w.cache[key]
	w.mu.Unlock()
	if have {
		return v, nil
	}
	v, err := get()
	if err == nil {
		w.mu.Lock()
		w.cache[key] = v
		w.mu.Unlock()
	}

	return v, err
}

// kvGet is the function kvGet.
func (w *world) kvGet(ctx context.Context, bucket, key string) (string, error) {
	w.setDynamic()
	if w.opts.KV == nil {
		return "", withHint(fmt.Errorf("kvGet %w", errNoNATS), noNATSHint)
	}

	return w.cached("kv:"+bucket+"\x00"+key, func() (string, error) {
		v, err := w.opts.KV(ctx, bucket, key)
		if err != nil {
			return "", fmt.Errorf("kvGet %s/%s: %w", bucket, key, err)
		}
		return string(v), nil
	})
}

// errElsewhere is a file that only the node has.
var errElsewhere = errors.New("it is the node's")

// elsewhere notes the files that expressions read beside the manifest, and
// keeps them from reading others of this machine when the manifest is for another.
func (w *world) elsewhere(path string) error {
	switch {
	case !w.absent:
		return nil
	case filepath.IsAbs(path):
		return errElsewhere
	}
	w.mu.Lock()
	w.relative = append(w.relative, path)
	w.mu.Unlock()

	return nil
}

// tolerates says that a failure is left to the node: it can have what is missing
// here. From then on nothing that follows from it is sure.
func (w *world) tolerates() bool {
	w.unsure = w.unsure || w.absent

	return w.absent
}
