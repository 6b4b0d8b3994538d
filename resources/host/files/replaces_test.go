package files_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/files"
)

// A write that replaces an entry refuses a path that has changed since the look.
func TestWriteReplaces(t *testing.T) {
	for name, c := range map[string]struct {
		before string
		change func(path string) error
		err    error
	}{
		"the same file":  {before: "a"},
		"no file":        {},
		"changed":        {before: "a", change: func(path string) error { return os.WriteFile(path, []byte("longer"), 0o600) }, err: files.ErrReplaced},
		"another mode":   {before: "a", change: func(path string) error { return os.Chmod(path, 0o640) }, err: files.ErrReplaced},
		"removed":        {before: "a", change: os.Remove, err: files.ErrReplaced},
		"created":        {change: func(path string) error { return os.WriteFile(path, nil, 0o600) }, err: files.ErrReplaced},
		"made a symlink": {before: "a", change: func(path string) error { return errors.Join(os.Remove(path), os.Symlink("x", path)) }, err: files.ErrReplaced},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			if c.before != "" {
				if err := os.WriteFile(path, []byte(c.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			d := files.New(files.Options{})
			entry, err := d.Look(path)
			if err != nil {
				t.Fatal(err)
			}
			o := files.WriteOptions{Replaces: &entry, Check: func(string) error {
				if c.change == nil {
					return nil
				}
				return c.change(path)
			}}
			err = d.WriteWith(t.Context(), path, strings.NewReader("new"), files.OwnAttrs(0o600), o)
			if !errors.Is(err, c.err) || c.err == nil && err != nil {
				t.Errorf("error %v, not %v", err, c.err)
			}
			if content, _ := os.ReadFile(path); (string(content) == "new") != (c.err == nil) {
				t.Errorf("the content is %q", content)
			}
		})
	}
}
