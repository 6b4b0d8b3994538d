package file_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/resources/file"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// sparse makes a file of 8 TiB that takes no space and hours to read.
func sparse(name string, mode os.FileMode) setup {
	return func(t *testing.T, dir string) {
		t.Helper()
		withFile(name, "", mode)(t, dir)
		check(t, os.Truncate(filepath.Join(dir, name), 8<<40))
	}
}

// TestSourceTooLarge has a source that others made larger than they have space for.
func TestSourceTooLarge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		setup setup
		more  typetest.Properties
		err   string
	}{
		"of others": {setup: sparse("source", 0o666), err: "source: file is too large: 8.8 TB, and others than root may write to it: set max_size if it is as large as it should be"},
		"of others, and so is what it is copied to": {setup: all(sparse("source", 0o666), sparse("out", 0o644)), err: "others than root may write to it"},
		"larger than max_size":                      {setup: sparse("source", 0o644), more: typetest.Properties{"max_size": "1TiB"}, err: "source: file is too large: 8.8 TB, and max_size is 1TiB"},
		"as large as max_size":                      {setup: withFile("source", "12345", 0o666), more: typetest.Properties{"max_size": "5"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c.setup(t, dir)
			spec := specOf(t, owned(t, "out", typetest.Properties{"source": dir + "/source", "max_size": c.more["max_size"]})(dir))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := file.Type{}.Status(ctx, testEnv(t, ""), file.Posix{}, spec)
			switch {
			case c.err == "":
				check(t, err)
			case err == nil || !errors.Is(err, files.ErrTooLarge) || !strings.Contains(err.Error(), c.err):
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestSourceGrows has a source that grows once it was looked at.
func TestSourceGrows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	withFile("source", "12345", 0o644)(t, dir)
	check(t, os.Truncate(dir+"/source", 8<<40))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	source, err := files.Open(dir + "/source")
	check(t, err)
	defer source.Close()
	check(t, testEnv(t, "").Host.Write(ctx, dir+"/out", files.Sized{File: source, Size: 5}, hosttest.Attrs(t, 0o644)))
	holds("out", "12345", 0o644)(t, dir)
}
