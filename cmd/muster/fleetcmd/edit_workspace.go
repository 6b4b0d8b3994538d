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

// workspace is a private directory with a copy of what is edited.
type workspace struct {
	dir string
	// manifest is the file that the editor opens, before what it had at first.
	manifest string
	before   []byte
	// source is what is pushed: the manifest, or the directory of a bundle.
	source string
	bundle bool
}

// newWorkspace makes a copy of what a revision assigns, with all files of a bundle.
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
		_, err = io.Copy(io.Discard, r) // its digest is known at its end
	}
	if err := errors.Join(err, r.Close()); err != nil {
		return w, fmt.Errorf("bundle %s: %w", value.Bundle, err)
	}
	info, err := os.Lstat(w.manifest)
	switch {
	case err == nil && !info.Mode().IsRegular():
		err = fmt.Errorf("bundle %s: %s is no regular file: edit the directory that it was pushed from, and push that", value.Bundle, model.BundleManifest)
	case err == nil:
		w.before, err = os.ReadFile(w.manifest)
	}

	return w, err
}

// remove removes the copy, also when the command was interrupted.
func (w *workspace) remove() error { return paths.RemoveTree(context.Background(), w.dir) }

// isChanged reports whether the manifest is another one than it was.
func (w *workspace) isChanged() (bool, error) {
	now, err := os.ReadFile(w.manifest)

	return !bytes.Equal(now, w.before), err
}

// kept says where the text is that was not pushed.
func (w *workspace) kept() string {
	if w.bundle {
		return "what you edited is in " + w.source
	}

	return "what you edited is in " + w.manifest
}

// editor returns the command of the user's editor. The one that is taken where none is named needs a terminal.
func editor(isTerminal bool) ([]string, error) {
	name := "VISUAL"
	if os.Getenv(name) == "" {
		name = "EDITOR"
	}
	if os.Getenv(name) == "" && !isTerminal {
		return nil, cli.Usagef("no editor: there is no terminal for vi; name another one in $VISUAL or $EDITOR")
	}
	text := cmp.Or(os.Getenv(name), "vi")
	argv, err := shellquote.Split(text)
	if err != nil {
		return nil, cli.Usagef("$%s %q: %w", name, text, err)
	}
	if len(argv) == 0 {
		return nil, cli.Usagef("$%s is blank: name an editor", name)
	}

	return argv, nil
}

// edit has the user edit the manifest.
func (w *workspace) edit(argv []string) error {
	code, err := command.Interactive(append(argv[:len(argv):len(argv)], w.manifest))
	switch {
	case errors.Is(err, command.ErrNotFound):
		return cli.Usagef("no editor: %w; name one in $VISUAL or $EDITOR", err)
	case err != nil:
		return err
	case code != 0:
		return fmt.Errorf("the editor %s ended with exit code %d", argv[0], code)
	}

	return nil
}
