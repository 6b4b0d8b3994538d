package assign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
)

// StdinName is the file name in positions of standard input.
const StdinName = "<stdin>"

// ErrNeedsFiles means that a manifest without a directory names other files.
var ErrNeedsFiles = errors.New("names files beside it, push its file or directory instead of standard input")

// Check validates a manifest before a push. It returns the files that the manifest names, also with an error.
// The error is model.Problems with all problems.
type ManifestCheck func(name string, text []byte) ([]manifest.File, error)

// Source is a valid manifest.
type Source struct {
	// Name is the default name: the base name of its file or directory; empty for
	// standard input.
	Name string
	// Text is the manifest itself.
	Text []byte

	dir   string
	whole bool
	files []string
}

// ReadSource reads and checks a manifest from a file, a directory with manifest.yaml, or standard input for
// the path "-". It returns errors of check and of the system, ErrNoManifest, ErrNeedsFiles,
// model.ErrTooLarge, or model.Problems for missing files that the manifest names.
func ReadSource(path string, stdin io.Reader, check ManifestCheck) (*Source, error) {
	s, name, err := openSource(path, stdin)
	if err != nil {
		return nil, err
	}
	files, err := check(name, s.Text)
	var problems model.Problems
	switch {
	case err != nil && !errors.As(err, &problems):
		return nil, err
	case s.dir == "" && len(files) > 0:
		return nil, fmt.Errorf("the manifest %w: %s", ErrNeedsFiles, files[0].Path)
	}
	for _, f := range files {
		if f.HasExpression {
			if !s.whole {
				problems.Add(f.Pos, "push the directory of the manifest, which is called "+model.BundleManifest+" there, with all its files", "only the node can resolve the file %q", f.Path)
			}
			continue
		}
		if _, err := os.Stat(filepath.Join(s.dir, f.Path)); err != nil {
			problems.Add(placeOf(f.Pos, s.Text, f.Path), "a relative path is taken from the manifest's directory", "%v", err)
		}
		s.files = append(s.files, f.Path)
	}

	return s, problems.Err()
}

// placeOf returns the position of a file name in an expression. Only the document is known, so it returns the
// position of the path if the path occurs once in quotes.
func placeOf(pos model.Position, text []byte, path string) model.Position {
	if pos.Line > 0 {
		return pos
	}
	found := -1
	for _, quote := range []string{"'", `"`} {
		quoted := []byte(quote + path + quote)
		switch at := bytes.Index(text, quoted); {
		case at < 0:
		case found >= 0 || bytes.LastIndex(text, quoted) != at:
			return pos
		default:
			found = at
		}
	}
	if found < 0 {
		return pos
	}
	pos.Line = 1 + bytes.Count(text[:found], []byte("\n"))
	pos.Column = 1 + utf8.RuneCount(text[bytes.LastIndexByte(text[:found], '\n')+1:found])

	return pos
}

// openSource reads the text. It returns the file name for positions.
func openSource(path string, stdin io.Reader) (s *Source, name string, err error) {
	if path == "-" {
		text, err := readText(stdin, StdinName)
		return &Source{Text: text}, StdinName, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, "", err
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, "", err
	}
	base := filepath.Base(absolute)
	s = &Source{Name: strings.TrimSuffix(base, filepath.Ext(base)), dir: filepath.Dir(path)}
	file := path
	if info.IsDir() {
		s.Name, s.dir, s.whole = base, path, true
		file = filepath.Join(path, model.BundleManifest)
		info, err = os.Stat(file)
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, "", manifest.NoManifest(path)
	case err != nil:
		return nil, "", err
	case !info.Mode().IsRegular():
		// Opening a pipe blocks until a writer opens it.
		return nil, "", fmt.Errorf("%s is not a regular file (pipe a manifest into -, with --name)", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	s.Text, err = readText(f, file)

	return s, file, err
}

func readText(r io.Reader, name string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, manifest.DefaultMaxBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > manifest.DefaultMaxBytes:
		return nil, fmt.Errorf("%s: %w: a manifest has at most %d MiB, deliver large files beside it, as source", name, model.ErrTooLarge, manifest.DefaultMaxBytes>>20)
	default:
		return text, nil
	}
}

// NeedsBundle reports whether the manifest needs a bundle: it is a directory, or it names other files.
func (s *Source) NeedsBundle() bool { return s.whole || len(s.files) > 0 }
