// Package assign validates, bundles, signs and stores assignments, waits for nodes to apply them, and shows the content,
// differences and history of their revisions.
package assign

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// StdinName is the file name in positions of standard input.
const StdinName = "<stdin>"

// ErrNeedsFiles means that a manifest without a directory names other files.
var ErrNeedsFiles = errors.New("names files beside it, push its file or directory instead of standard input")

// ManifestCheck checks a manifest before a push. It returns the files that the manifest names, also with an error. The
// error is model.Problems with all problems.
type ManifestCheck func(name string, text []byte) (manifest.Checked, error)

// Checker returns a check of a manifest without a node. warn receives the warnings.
func Checker(ctx context.Context, types resource.Types, terms model.Assignment, warn func(model.Problem)) ManifestCheck {
	return func(name string, text []byte) (manifest.Checked, error) {
		doc, err := manifest.Parse(name, text)
		if err != nil {
			return manifest.Checked{}, err
		}
		in := manifest.Inputs{Data: terms.Data, Drift: terms.Drift}
		if name != StdinName {
			in.Dir = filepath.Dir(name)
			// A user with write access to the directory can replace the manifest.
			if in.Author, err = paths.AuthorIn(in.Dir); err != nil {
				return manifest.Checked{}, err
			}
		}
		checked, err := manifest.NewLoader(manifest.Options{Types: types}).Check(ctx, doc, in)
		if checked == nil {
			return manifest.Checked{}, err
		}
		for _, w := range checked.Warnings {
			warn(w)
		}

		return *checked, err
	}
}

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
	// declared are the resources that are the same on all nodes.
	declared []*resource.Resource
}

// ReadSource reads and checks a manifest from a file, a directory with manifest.yaml, or standard input for
// the path "-". It returns errors of check and of the system, ErrNoManifest, ErrNeedsFiles,
// model.ErrTooLarge, or model.Problems for missing files that the manifest names.
func ReadSource(path string, stdin io.Reader, check ManifestCheck) (*Source, error) {
	s, name, err := openSource(path, stdin)
	if err != nil {
		return nil, err
	}
	checked, err := check(name, s.Text)
	files := checked.Files
	s.declared = sameOnAllNodes(checked.Resources)
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

// Errors of bundling, wrapped with the path.
var (
	// ErrNoManifest means that a directory has no manifest.yaml.
	ErrNoManifest = manifest.ErrNoManifest
	// ErrNotBundled means that a bundle cannot contain a file.
	ErrNotBundled = errors.New("cannot be part of a bundle")
)

// skipped are directories of version control, which bundles omit.
var skipped = [...]string{".git", ".hg", ".svn", ".bzr"}

// Bundle writes the source as a tar.gz and returns its digest. The bytes depend only on names, content and
// execute permissions. The manifest in it is the checked text.
func (s *Source) Bundle(ctx context.Context, w io.Writer) (digest string, err error) {
	root, err := os.OpenRoot(cmp.Or(s.dir, "."))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	names, err := s.names(root.FS())
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	zipped := gzip.NewWriter(io.MultiWriter(w, sum))
	b := bundle{root: root, manifest: s.Text, archive: tar.NewWriter(zipped)}
	for _, name := range names {
		if err := context.Cause(ctx); err != nil {
			return "", err
		}
		if err := b.add(name); err != nil {
			return "", fmt.Errorf("bundle %s: %w", name, err)
		}
	}
	if err := errors.Join(b.archive.Close(), zipped.Close()); err != nil {
		return "", err
	}

	return model.DigestFrom(sum), nil
}

// names returns the sorted paths of the bundle: all files of a directory, or the manifest with the files that
// it names.
func (s *Source) names(dir fs.FS) ([]string, error) {
	names, files := []string{model.BundleManifest}, s.files
	if s.whole {
		files = []string{"."}
	}
	for _, file := range files {
		file = path.Clean(filepath.ToSlash(file))
		switch {
		case !filepath.IsLocal(file) || file == "." && !s.whole:
			return nil, fmt.Errorf("%s: %w: it is not below the manifest's directory", file, ErrNotBundled)
		case file == model.BundleManifest:
			return nil, fmt.Errorf("%s: %w: the manifest has that name in the bundle", file, ErrNotBundled)
		}
		for parent := path.Dir(file); parent != "."; parent = path.Dir(parent) {
			names = append(names, parent)
		}
		err := fs.WalkDir(dir, file, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil || name == ".":
				return err
			case s.whole && d.IsDir() && slices.Contains(skipped[:], d.Name()):
				return fs.SkipDir
			}
			names = append(names, name)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(names)

	return slices.Compact(names), nil
}

// bundle is a bundle during writing: paths below root, and the manifest.
type bundle struct {
	root     *os.Root
	manifest []byte
	archive  *tar.Writer
}

// add adds a path. The header has no times and owners, because nodes ignore them and equal content must give
// equal bytes.
func (b *bundle) add(name string) error {
	if name == model.BundleManifest {
		err := b.archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(b.manifest)), Mode: 0o644})
		if err == nil {
			_, err = b.archive.Write(b.manifest)
		}
		return err
	}
	info, err := b.root.Lstat(name)
	if err != nil {
		return err
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return b.file(name)
	case mode.IsDir():
		return b.archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755})
	case mode&fs.ModeSymlink != 0:
		target, err := b.link(name)
		if err != nil {
			return err
		}
		return b.archive.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777})
	default:
		return fmt.Errorf("%w: only files, directories and symbolic links can", ErrNotBundled)
	}
}

func (b *bundle) file(name string) (err error) {
	f, err := b.root.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: 0o644}
	if info.Mode()&0o111 != 0 {
		header.Mode = 0o755
	}
	if err := b.archive.WriteHeader(header); err != nil {
		return err
	}
	if n, err := io.Copy(b.archive, f); err != nil || n != info.Size() {
		return errors.Join(fmt.Errorf("changed while it was read, from %d bytes to %d or more", info.Size(), n), err)
	}

	return nil
}

// link returns the target of a symbolic link. Nodes reject one that leads out of
// the bundle, so link rejects it already. A .. behind a name, which may itself be
// a link, counts as leading out.
func (b *bundle) link(name string) (string, error) {
	target, err := b.root.Readlink(name)
	if err != nil {
		return "", err
	}
	below := strings.Split(target, "/")
	for len(below) > 0 && below[0] == ".." {
		below = below[1:]
	}
	if path.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(name), target)) || slices.Contains(below, "..") {
		return "", fmt.Errorf("%w: the link to %q leads out of it, put a copy there", ErrNotBundled, target)
	}

	return target, nil
}
