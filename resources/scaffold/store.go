package scaffold

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// parallel is the number of files that are written in parallel, so the system syncs many of them at once.
const parallel = 16

// store writes the pending files without post commands in parallel, then the other files one by one.
func (t *target) store(ctx context.Context) error {
	// foreign are the directories in which another user may exchange files.
	foreign := map[string]bool{}
	var plain, posted []file
	for _, f := range t.due {
		dir := filepath.Dir(f.path)
		if _, made := foreign[dir]; !made {
			var err error
			if foreign[dir], err = t.env.Host.EnsureDirectory(dir); err != nil {
				return err
			}
		}
		if len(t.spec.PostCommands(f.path)) > 0 {
			posted = append(posted, f)
		} else {
			plain = append(plain, f)
		}
	}
	if err := t.write(ctx, plain, t.spec.Name); err != nil || len(posted) == 0 {
		return err
	}

	return t.storePosted(ctx, posted, foreign)
}

// write writes files in parallel below root. The directories must exist.
func (t *target) write(ctx context.Context, list []file, root string) error {
	errs := make([]error, len(list))
	var writing errgroup.Group
	writing.SetLimit(parallel)
	for i, f := range list {
		writing.Go(func() error {
			errs[i] = t.env.Host.Write(ctx, t.below(root, f.path), bytes.NewReader(f.content), f.wanted())
			return nil
		})
	}
	_ = writing.Wait() // errs has all errors

	return errors.Join(errs...)
}

// below returns the path of a file for another target directory.
func (t *target) below(root, path string) string {
	return root + strings.TrimPrefix(path, t.spec.Name)
}

// validate runs the command of validate on all files, in a directory that no other user can
// reach.
func (t *target) validate(ctx context.Context) error {
	private, err := t.env.Host.TempDir("validate")
	if err != nil {
		return err
	}
	defer t.env.Host.RemoveAll(context.WithoutCancel(ctx), private)
	root := filepath.Join(private, filepath.Base(t.spec.Name))
	dirs := map[string]bool{root: true}
	for _, f := range t.files {
		dirs[filepath.Dir(t.below(root, f.path))] = true
	}
	for dir := range dirs {
		if err := t.env.Host.MakeDirectory(dir, files.OwnAttrs(0o755)); err != nil {
			return err
		}
	}
	if err := t.write(ctx, t.files, root); err != nil {
		return err
	}

	return resource.RunValidator(ctx, t.env, t.spec.Validator, root, t.spec.Name, root)
}

// storePosted writes files and runs their commands. It removes their records first: after a kill
// the commands run again. It also records the finished files if a command fails.
func (t *target) storePosted(ctx context.Context, posted []file, foreign map[string]bool) (err error) {
	known := len(t.past.Files)
	for _, f := range posted {
		delete(t.past.Files, f.path)
	}
	if len(t.past.Files) < known {
		if err := t.past.save(ctx, t.env.Host); err != nil {
			return err
		}
	}
	for _, f := range posted {
		if t.past.Files[f.path], err = t.writeAndPost(ctx, f, foreign[filepath.Dir(f.path)]); err != nil {
			delete(t.past.Files, f.path)
			break
		}
	}

	return errors.Join(err, t.past.save(ctx, t.env.Host))
}

// writeAndPost writes a file and runs its commands. If another user may exchange the file, the
// commands run on a private copy, and their result is written.
func (t *target) writeAndPost(ctx context.Context, f file, foreign bool) (past, error) {
	at, dir := f.path, t.spec.Name
	if foreign {
		private, err := t.env.Host.TempDir("post")
		if err != nil {
			return past{}, err
		}
		defer t.env.Host.RemoveAll(context.WithoutCancel(ctx), private)
		at, dir = filepath.Join(private, filepath.Base(f.path)), private
	}
	if err := t.env.Host.Write(ctx, at, bytes.NewReader(f.content), f.wanted()); err != nil {
		return past{}, err
	}
	for _, words := range t.spec.PostCommands(at) {
		if err := resource.RunHook(ctx, t.env, words, dir); err != nil {
			return past{}, fmt.Errorf("post of %s: %w", f.path, err)
		}
	}
	left, err := t.env.Host.Look(at)
	if err == nil && left.Kind != files.File {
		err = fmt.Errorf("a post command left no file at %s", f.path)
	}
	if err == nil && foreign {
		left, err = t.install(ctx, left, f.path)
	}
	if err != nil {
		return past{}, err
	}
	digest, err := t.env.Host.Compare(ctx, left)

	return pastOf(f, t.spec.PostCommands(f.path), digest, left), err
}

// install writes a copy of a file.
func (t *target) install(ctx context.Context, from files.Entry, path string) (files.Entry, error) {
	content, err := from.Open()
	if err != nil {
		return files.Entry{}, err
	}
	defer content.Close()
	if err := t.env.Host.Write(ctx, path, content, attributesOf(from)); err != nil {
		return files.Entry{}, err
	}

	return t.env.Host.Look(path)
}

// records is the folder of the records in the state directory.
const records = "scaffolds"

// record is the record of the files of a target with post commands, in the state directory.
type record struct {
	Target string          `json:"target"`
	Files  map[string]past `json:"files"`
}

// past is a rendered file, its commands, and the file after the commands.
type past struct {
	Rendered   string      `json:"rendered"`
	Mode       fs.FileMode `json:"mode"`
	Post       string      `json:"post"`
	Left       string      `json:"left"`
	Attributes files.Attrs `json:"attributes"`
}

func pastOf(f file, commands [][]string, left string, entry files.Entry) past {
	return past{Rendered: f.digest, Mode: f.mode, Post: digestOf(fmt.Appendf(nil, "%q", commands)), Left: left, Attributes: attributesOf(entry)}
}

// recall returns the record of a target. A damaged record is empty: then the files are written and the
// commands run once more.
func recall(h *host.Host, target string) (record, error) {
	r, _, err := host.Recall[record](h, records, target)
	if r.Target != target || r.Files == nil {
		r = record{Target: target, Files: map[string]past{}}
	}

	return r, err
}

// save writes the record durably, even if the run is ending.
func (r record) save(ctx context.Context, h *host.Host) error {
	return h.Remember(ctx, records, r.Target, r)
}

// digestOf returns the hex SHA-256 of a text.
func digestOf(text []byte) string {
	sum := sha256.Sum256(text)

	return hex.EncodeToString(sum[:])
}
