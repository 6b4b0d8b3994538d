package choria

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

const (
	// parallel is how many files are written at the same time, so that the system
	// syncs many of them to the disk at once.
	parallel = 16
	// errorLines is how many lines of a command's output are in its error.
	errorLines = 10
)

// makeDirectory makes a directory and those above it, from the top. Below a
// directory of another user they belong to that user: to no others may a path
// lead from there.
func (t *target) makeDirectory(dir string) (files.Entry, error) {
	entry, err := t.env.Host.Look(dir)
	switch {
	case err != nil || entry.Kind == files.Directory:
		return entry, err
	case entry.Kind != files.Absent:
		return entry, fmt.Errorf("%s %w", dir, files.ErrNotDirectory)
	}
	above, err := t.makeDirectory(filepath.Dir(dir))
	if err != nil {
		return entry, err
	}
	attrs := files.OwnAttrs(0o755)
	if isForeign(above) {
		attrs.UID, attrs.GID = above.UID, above.GID
	}
	if err := t.env.Host.MakeDirectory(dir, attrs); err != nil {
		return entry, err
	}

	return t.env.Host.Look(dir)
}

// isForeign reports whether somebody else may exchange what is in a directory.
func isForeign(dir files.Entry) bool {
	const everybody, sticky = 0o002, 0o1000

	return dir.UID != 0 && !dir.IsOwn() || dir.Mode&(everybody|sticky) == everybody
}

// store writes the due files without post commands at the same time, then the
// others one by one.
func (t *target) store(ctx context.Context) error {
	dirs := map[string]files.Entry{}
	var plain, posted []file
	for _, f := range t.due {
		dir := filepath.Dir(f.path)
		if _, made := dirs[dir]; !made {
			var err error
			if dirs[dir], err = t.makeDirectory(dir); err != nil {
				return err
			}
		}
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
			errs[i] = t.env.Host.Write(ctx, f.path, bytes.NewReader(f.content), f.wanted())
		})
	}
	writing.Wait()
	if err := errors.Join(errs...); err != nil || len(posted) == 0 {
		return err
	}

	return t.storePosted(ctx, posted, dirs)
}

// storePosted writes files and runs their commands. They are forgotten first:
// after a kill their commands run again. What was done is recorded also when
// one fails.
func (t *target) storePosted(ctx context.Context, posted []file, dirs map[string]files.Entry) (err error) {
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
		if t.past.Files[f.path], err = t.writeAndPost(ctx, f, isForeign(dirs[filepath.Dir(f.path)])); err != nil {
			delete(t.past.Files, f.path)
			break
		}
	}

	return errors.Join(err, t.past.save(ctx, t.env.Host))
}

// writeAndPost writes a file and runs its commands. Where somebody else may
// exchange it, the commands run on a copy that nobody else can reach, and what
// they leave is written.
func (t *target) writeAndPost(ctx context.Context, f file, foreign bool) (past, error) {
	at, dir := f.path, t.spec.Name
	if foreign {
		private, err := t.env.Host.TempDir("post")
		if err != nil {
			return past{}, err
		}
		defer t.env.Host.RemoveAll(private)
		at, dir = filepath.Join(private, filepath.Base(f.path)), private
	}
	if err := t.env.Host.Write(ctx, at, bytes.NewReader(f.content), f.wanted()); err != nil {
		return past{}, err
	}
	for _, words := range t.spec.PostCommands(at) {
		if err := t.post(ctx, words, dir); err != nil {
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
	digest, err := t.env.Host.DigestEntry(ctx, left)

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

func (t *target) post(ctx context.Context, words []string, dir string) error {
	result, err := t.env.Host.Run(ctx, command.Command{Argv: words, Dir: dir, Env: t.env.RunEnv})
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
