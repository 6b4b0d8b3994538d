package assign

import (
	"archive/tar"
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

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
)

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
