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

const (
	// parallel is how many files are written at the same time, so that the system
	// syncs many of them to the disk at once.
	parallel = 16
	// dirMode is the mode of new directories.
	dirMode = 0o755
	// errorLines is how many lines of a command's output are in its error.
	errorLines = 10
)

// Scaffold writes the files that differ, runs their post commands, and with
// purge removes what no template yields.
func (p Provider) Scaffold(ctx context.Context, env resource.Env, spec *scaffold.Spec) error {
	t, err := p.observe(ctx, env, spec, true)
	if err == nil {
		err = t.state.Obstacle
	}
	if err != nil {
		return err
	}
	if !t.exists() {
		if err := env.Host.MakeDirectory(spec.Name, files.OwnAttrs(dirMode)); err != nil {
			return err
		}
	}
	made := map[string]bool{spec.Name: true}
	for _, f := range t.due {
		if err := makeBelow(env.Host, made, filepath.Dir(f.path)); err != nil {
			return err
		}
	}
	if err := t.store(ctx); err != nil || !spec.Purge {
		return err
	}
	var failed error
	for _, path := range t.state.Metadata.Purged {
		failed = errors.Join(failed, env.Host.Remove(path))
	}

	return failed
}

// makeBelow makes a directory and those above it, from the top.
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

// store writes the due files without post commands at the same time, then the
// others one by one.
func (t *target) store(ctx context.Context) error {
	var plain, posted []file
	for _, f := range t.due {
		if len(t.spec.PostCommands(f.path)) > 0 {
			posted = append(posted, f)
		} else {
			plain = append(plain, f)
		}
	}
	errs := make([]error, len(plain))
	var writing sync.WaitGroup
	free := make(chan struct{}, parallel)
	for i, f := range plain {
		free <- struct{}{}
		writing.Go(func() {
			defer func() { <-free }()
			errs[i] = t.write(ctx, f)
		})
	}
	writing.Wait()
	if err := errors.Join(errs...); err != nil || len(posted) == 0 {
		return err
	}

	return t.storePosted(ctx, posted)
}

// storePosted writes files and runs their commands. They are forgotten first:
// after a kill their commands run again. What was done is recorded also when
// one fails.
func (t *target) storePosted(ctx context.Context, files []file) (err error) {
	known := len(t.past.Files)
	for _, f := range files {
		delete(t.past.Files, f.path)
	}
	if len(t.past.Files) < known {
		if err := t.past.save(ctx, t.env.Host); err != nil {
			return err
		}
	}
	for _, f := range files {
		if t.past.Files[f.path], err = t.writeAndPost(ctx, f); err != nil {
			delete(t.past.Files, f.path)
			break
		}
	}

	return errors.Join(err, t.past.save(ctx, t.env.Host))
}

func (t *target) write(ctx context.Context, f file) error {
	return t.env.Host.Write(ctx, f.path, bytes.NewReader(f.content), files.OwnAttrs(f.mode))
}

func (t *target) writeAndPost(ctx context.Context, f file) (past, error) {
	if err := t.write(ctx, f); err != nil {
		return past{}, err
	}
	commands := t.spec.PostCommands(f.path)
	for _, words := range commands {
		if err := t.post(ctx, words); err != nil {
			return past{}, fmt.Errorf("post of %s: %w", f.path, err)
		}
	}
	left, err := t.env.Host.Look(f.path)
	if err != nil {
		return past{}, err
	}
	if left.Kind != files.File {
		return past{}, fmt.Errorf("a post command left no file at %s", f.path)
	}
	digest, err := t.env.Host.DigestEntry(ctx, left)

	return pastOf(f, commands, digest, left), err
}

func (t *target) post(ctx context.Context, words []string) error {
	result, err := t.env.Host.Run(ctx, command.Command{Argv: words, Dir: t.spec.Name, Env: t.env.RunEnv})
	if err != nil || result.ExitCode == 0 {
		return err
	}
	err = fmt.Errorf("%s ended with exit code %d", words[0], result.ExitCode)
	for _, output := range []string{result.Stderr.LastLines(errorLines), result.Stdout.LastLines(errorLines)} {
		if output != "" {
			return resource.CommandError{Err: err, Output: output}
		}
	}

	return err
}
