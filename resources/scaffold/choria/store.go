package choria

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/scaffold"
)

// parallel is how many files are written at the same time: the system then
// syncs many of them to the disk at once.
const parallel = 16

// dirMode is that of directories that are made.
const dirMode = 0o755

// Scaffold writes what differs, runs the post commands on what it wrote, and
// removes what no template gives.
func (p Provider) Scaffold(ctx context.Context, env resource.Env, spec *scaffold.Spec) error {
	found, err := p.look(ctx, env, spec, p.kept.take(env, spec))
	switch {
	case err != nil:
		return err
	case found.state.Obstacle != nil:
		return found.state.Obstacle
	}
	if !found.state.Metadata.TargetExists {
		if err := env.Host.MakeDirectory(spec.Name, files.OwnAttrs(dirMode)); err != nil {
			return err
		}
	}
	if err := makeParents(env.Host, spec.Name, found.due); err != nil {
		return err
	}
	w := writer{env: env, spec: spec, past: found.past}
	if err := w.write(ctx, found.due); err != nil {
		return err
	}
	if !spec.Purge {
		return nil
	}
	var failed error
	for _, path := range found.state.Metadata.Purged {
		failed = errors.Join(failed, env.Host.Remove(path))
	}

	return failed
}

// makeParents makes the directories that files are to be in, from the top.
func makeParents(h *host.Host, target string, files []file) error {
	made := map[string]bool{target: true}
	for _, f := range files {
		if err := makeBelow(h, made, filepath.Dir(f.path)); err != nil {
			return err
		}
	}

	return nil
}

func makeBelow(h *host.Host, made map[string]bool, dir string) error {
	if made[dir] {
		return nil
	}
	if err := makeBelow(h, made, filepath.Dir(dir)); err != nil {
		return err
	}
	made[dir] = true
	entry, err := h.Look(dir)
	switch {
	case err != nil || entry.Kind == files.Directory:
		return err
	case entry.Kind != files.Absent:
		return fmt.Errorf("%s %w", dir, files.ErrNotDirectory)
	}

	return h.MakeDirectory(dir, files.OwnAttrs(dirMode))
}

// writer writes files and runs their post commands.
type writer struct {
	env  resource.Env
	spec *scaffold.Spec
	past record
}

// write writes the files without post commands together, the others one by one.
// What was done is remembered also when something fails.
func (w *writer) write(ctx context.Context, files []file) error {
	var posted []file
	var errs []error
	var mu sync.Mutex
	var writing sync.WaitGroup
	free := make(chan struct{}, parallel)
	for _, f := range files {
		if len(w.spec.PostCommands(f.path)) > 0 {
			posted = append(posted, f)
			continue
		}
		free <- struct{}{}
		writing.Go(func() {
			defer func() { <-free }()
			if err := w.store(ctx, f); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	writing.Wait()
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if len(posted) == 0 {
		return nil
	}
	err := w.owe(ctx, posted)
	if err != nil {
		return err
	}
	for _, f := range posted {
		if err = w.storeAndPost(ctx, f); err != nil {
			break
		}
	}

	return errors.Join(err, remember(ctx, w.env.Host, w.past))
}

// owe forgets what post did to files that are to be written: a kill between
// here and the end of post leaves its commands owed.
func (w *writer) owe(ctx context.Context, files []file) error {
	known := len(w.past.Files)
	for _, f := range files {
		delete(w.past.Files, f.path)
	}
	if len(w.past.Files) == known {
		return nil
	}

	return remember(ctx, w.env.Host, w.past)
}

func (w *writer) store(ctx context.Context, f file) error {
	return w.env.Host.Write(ctx, f.path, bytes.NewReader(f.content), files.OwnAttrs(f.mode))
}

func (w *writer) storeAndPost(ctx context.Context, f file) error {
	if err := w.store(ctx, f); err != nil {
		return err
	}
	commands := w.spec.PostCommands(f.path)
	for _, words := range commands {
		if err := w.run(ctx, f.path, words); err != nil {
			return err
		}
	}
	left, err := w.env.Host.Look(f.path)
	if err != nil {
		return err
	}
	if left.Kind != files.File {
		return fmt.Errorf("a post command left no file at %s", f.path)
	}
	digest, err := w.env.Host.DigestEntry(ctx, left)
	if err != nil {
		return err
	}
	w.past.Files[f.path] = past{Rendered: f.digest, Mode: f.mode, Post: digestOf(commands), Left: digest, Attributes: attributesOf(left)}

	return nil
}

// errorLines is how much of what a command says is in its error.
const errorLines = 10

func (w *writer) run(ctx context.Context, path string, words []string) error {
	result, err := w.env.Host.Run(ctx, command.Command{Argv: words, Dir: w.spec.Name, Env: w.env.RunEnv})
	if err != nil {
		return fmt.Errorf("post of %s: %w", path, err)
	}
	if result.ExitCode == 0 {
		return nil
	}
	err = fmt.Errorf("post of %s: %s ended with exit code %d", path, words[0], result.ExitCode)
	said := result.Stderr.LastLines(errorLines)
	if said == "" {
		said = result.Stdout.LastLines(errorLines)
	}
	if said != "" {
		return resource.Said{Err: err, Output: said}
	}

	return err
}
