package hosttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// MakeTree makes directories (name/), links (name -> text; DIR in the text is dir) and files.
func MakeTree(t testing.TB, dir string, items ...string) {
	t.Helper()
	for _, item := range items {
		name, text, isLink := strings.Cut(item, " -> ")
		path := filepath.Join(dir, name)
		var err error
		switch {
		case isLink:
			err = os.Symlink(strings.ReplaceAll(text, "DIR", dir), path)
		case strings.HasSuffix(name, "/"):
			err = os.Mkdir(path, 0o755)
		default:
			err = os.WriteFile(path, []byte(name), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
