package fleetcmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kballard/go-shellquote"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/paths"
)

// workspace is a private directory with a working copy of the assigned content.
type workspace struct {
	dir string
	// manifest is the file that the editor opens; before is its original content.
	manifest string
	before   []byte
	// source is the path to push: the manifest, or the directory of a bundle.
	source string
	bundle bool
}

// newWorkspace copies the content of an assignment, with all files of a bundle.
func newWorkspace(ctx context.Context, store *Store, key string, value document.Assigned) (w *workspace, err error) {
	_, name, _ := model.SplitKey(key)
	dir, err := os.MkdirTemp("", "muster-edit-")
	if err != nil {
		return nil, err
	}
	w = &workspace{dir: dir, bundle: value.Bundle != ""}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.remove())
		}
	}()
	if !w.bundle {
		w.manifest, w.before = filepath.Join(dir, name+".yaml"), []byte(value.Manifest)
		w.source = w.manifest
		return w, os.WriteFile(w.manifest, w.before, 0o600)
	}
	w.source = filepath.Join(dir, name)
	w.manifest = filepath.Join(w.source, model.BundleManifest)
	if err := os.Mkdir(w.source, 0o700); err != nil {
		return w, err
	}
	r, err := kvstore.NewContent(store.KV).GetBundle(ctx, value.Bundle)
	if err != nil {
		return w, err
	}
	err = archive.Unpack(ctx, r, w.source, archive.Limits{})
	if err == nil {
		_, err = io.Copy(io.Discard, r) // the reader verifies the digest at the end
	}
	if err := errors.Join(err, r.Close()); err != nil {
		return w, fmt.Errorf("bundle %s: %w", value.Bundle, err)
	}
	info, err := os.Lstat(w.manifest)
	switch {
	case err == nil && !info.Mode().IsRegular():
		err = fmt.Errorf("bundle %s: %s is not a regular file; edit the directory that you pushed it from, and push that directory", value.Bundle, model.BundleManifest)
	case err == nil:
		w.before, err = os.ReadFile(w.manifest)
	}

	return w, err
}

// remove removes the working copy, even after an interrupt.
func (w *workspace) remove() error { return paths.RemoveTree(context.Background(), w.dir) }

// isChanged reports whether the manifest differs from its original content.
func (w *workspace) isChanged() (bool, error) {
	now, err := os.ReadFile(w.manifest)

	return !bytes.Equal(now, w.before), err
}

// location describes where the edited text is.
func (w *workspace) location() string {
	if w.bundle {
		return "your edited text is in " + w.source
	}

	return "your edited text is in " + w.manifest
}

// editor returns the command of the user's editor. The default, vi, needs a terminal.
func editor(isTerminal bool) ([]string, error) {
	name := "VISUAL"
	if os.Getenv(name) == "" {
		name = "EDITOR"
	}
	if os.Getenv(name) == "" && !isTerminal {
		return nil, cli.Usagef("no editor: vi needs a terminal; set $VISUAL or $EDITOR to another editor")
	}
	text := cmp.Or(os.Getenv(name), "vi")
	argv, err := shellquote.Split(text)
	if err != nil {
		return nil, cli.Usagef("$%s %q: %w", name, text, err)
	}
	if len(argv) == 0 {
		return nil, cli.Usagef("$%s is blank; set it to an editor", name)
	}

	return argv, nil
}

// edit opens the manifest in the editor and waits.
func (w *workspace) edit(argv []string) error {
	code, err := command.Interactive(append(argv[:len(argv):len(argv)], w.manifest))
	switch {
	case errors.Is(err, command.ErrNotFound):
		return cli.Usagef("no editor: %w; set $VISUAL or $EDITOR", err)
	case err != nil:
		return err
	case code != 0:
		return fmt.Errorf("editor %s exited with code %d", argv[0], code)
	}

	return nil
}
