package choria

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/musterfleet/muster/resources/resource"
)

// maxKept is the most of one source, in bytes, that is kept for a run.
const maxKept = 16 << 20

// fetched are the sources that one run has fetched: it looks at a scaffold up to
// six times, and all of these are to see the same.
type fetched struct {
	mu    sync.Mutex
	run   string
	trees map[string]*tree
}

// tree gives a fetched source, from the same run where that has fetched it already.
func (f *fetched) tree(ctx context.Context, env resource.Env, url string) (*tree, error) {
	if f != nil && env.RunID != "" {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.run != env.RunID {
			f.run, f.trees = env.RunID, map[string]*tree{}
		}
		if t, have := f.trees[url]; have {
			return t, nil
		}
	}
	t, err := fetch(ctx, env, url)
	if err == nil && f != nil && env.RunID != "" && t.size() <= maxKept {
		f.trees[url] = t
	}

	return t, err
}

func fetch(ctx context.Context, env resource.Env, url string) (*tree, error) {
	if env.Scope.Origin == nil {
		return nil, errors.New("a source cannot be fetched here")
	}
	dir, cleanup, err := env.Scope.Origin.Tree(ctx, url)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("could not fetch the source: %w", err)
	}
	t, err := read(ctx, env, dir)
	if err != nil {
		err = inSource{err: err, dir: dir}
	}

	return t, errors.Join(err, cleanup())
}

// inSource is an error that names paths as they are in the source: the directory
// that it was unpacked into is gone.
type inSource struct {
	err error
	dir string
}

func (e inSource) Error() string { return strings.ReplaceAll(e.err.Error(), e.dir+"/", "") }
func (e inSource) Unwrap() error { return e.err }

func (t *tree) size() int {
	size := 0
	for _, text := range t.texts {
		size += len(text)
	}

	return size
}
