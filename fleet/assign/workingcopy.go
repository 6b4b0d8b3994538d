package assign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/paths"
)

// WorkingCopy is a private directory with a working copy of the assigned content.
type WorkingCopy struct {
	dir string
	// Manifest is the file that the editor opens; before is its original content.
	Manifest string
	before   []byte
	// Source is the path to push: the manifest, or the directory of a bundle.
	Source string
	// IsBundle is set if the assignment has a bundle.
	IsBundle bool
}

// NewWorkingCopy copies the content of an assignment, with all files of a bundle.
func NewWorkingCopy(ctx context.Context, key string, value document.Assigned, open OpenBundle) (w *WorkingCopy, err error) {
	_, name, _ := model.SplitKey(key)
	dir, err := os.MkdirTemp("", "muster-edit-")
	if err != nil {
		return nil, err
	}
	w = &WorkingCopy{dir: dir, IsBundle: value.Bundle != ""}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Remove())
		}
	}()
	if !w.IsBundle {
		w.Manifest, w.before = filepath.Join(dir, name+".yaml"), []byte(value.Manifest)
		w.Source = w.Manifest
		return w, os.WriteFile(w.Manifest, w.before, 0o600)
	}
	w.Source = filepath.Join(dir, name)
	w.Manifest = filepath.Join(w.Source, model.BundleManifest)
	if err := os.Mkdir(w.Source, 0o700); err != nil {
		return w, err
	}
	r, err := open(ctx, value.Bundle)
	if err != nil {
		return w, err
	}
	err = archive.Unpack(ctx, r, w.Source, archive.Limits{})
	if err == nil {
		_, err = io.Copy(io.Discard, r) // the reader verifies the digest at the end
	}
	if err := errors.Join(err, r.Close()); err != nil {
		return w, fmt.Errorf("bundle %s: %w", value.Bundle, err)
	}
	info, err := os.Lstat(w.Manifest)
	switch {
	case err == nil && !info.Mode().IsRegular():
		err = fmt.Errorf("bundle %s: %s is not a regular file; edit the directory that you pushed it from, and push that directory", value.Bundle, model.BundleManifest)
	case err == nil:
		w.before, err = os.ReadFile(w.Manifest)
	}

	return w, err
}

// Remove removes the working copy, even after an interrupt.
func (w *WorkingCopy) Remove() error { return paths.RemoveTree(context.Background(), w.dir) }

// IsChanged reports whether the manifest differs from its original content.
func (w *WorkingCopy) IsChanged() (bool, error) {
	now, err := os.ReadFile(w.Manifest)

	return !bytes.Equal(now, w.before), err
}
