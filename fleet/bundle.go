package fleet

import (
	"archive/tar"
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
)

// BundleManifest is the name of the manifest within a bundle.
const BundleManifest = "manifest.yaml"

// The errors of bundling, wrapped with the path concerned.
var (
	// ErrNoManifest is a directory without manifest.yaml.
	ErrNoManifest = errors.New("no manifest.yaml at its root")
	// ErrNotBundled is something that cannot be part of a bundle.
	ErrNotBundled = errors.New("cannot be part of a bundle")
)

// skipped are directories of version control, which do not belong to a delivery.
var skipped = [...]string{".git", ".hg", ".svn", ".bzr"}

// bundle is the content of a bundle: paths within it, below root.
type bundle struct {
	root  *os.Root
	names []string
	// manifest, when it is not nil, replaces the manifest.yaml of the root.
	manifest []byte
}

// newBundle opens a directory, and takes the names that pick adds.
func newBundle(dir string, pick func(*bundle) error) (*bundle, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	b := &bundle{root: root}
	if err := pick(b); err != nil {
		return nil, errors.Join(err, root.Close())
	}

	return b, nil
}

// bundleDir takes all of a directory, which has the manifest at its root.
func bundleDir(dir string) (*bundle, error) {
	return newBundle(dir, func(b *bundle) error {
		err := fs.WalkDir(b.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil || name == ".":
				return err
			case d.IsDir() && slices.Contains(skipped[:], d.Name()):
				return fs.SkipDir
			}
			b.names = append(b.names, name)
			return nil
		})
		if err == nil && !slices.Contains(b.names, BundleManifest) {
			err = fmt.Errorf("%s: %w", dir, ErrNoManifest)
		}
		return err
	})
}

// bundleFiles takes a manifest and the files and directories it names beside
// itself, relative to dir.
func bundleFiles(dir string, manifest []byte, files []string) (*bundle, error) {
	return newBundle(dir, func(b *bundle) error {
		b.manifest, b.names = manifest, []string{BundleManifest}
		for _, file := range files {
			if err := b.take(file); err != nil {
				return err
			}
		}
		return nil
	})
}

// take adds a path, its content and its parent directories.
func (b *bundle) take(file string) error {
	file = path.Clean(filepath.ToSlash(file))
	switch {
	case !filepath.IsLocal(file) || file == ".":
		return fmt.Errorf("%s: %w: it is not below the manifest's directory", file, ErrNotBundled)
	case file == BundleManifest:
		return fmt.Errorf("%s: %w: the manifest takes that name there", file, ErrNotBundled)
	}
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		b.names = append(b.names, dir)
	}

	return fs.WalkDir(b.root.FS(), file, func(name string, _ fs.DirEntry, err error) error {
		b.names = append(b.names, name)
		return err
	})
}

func (b *bundle) close() error { return b.root.Close() }

// write writes the bundle as a tar.gz, whose bytes depend only on names, content
// and whether a file is executable.
func (b *bundle) write(ctx context.Context, w io.Writer) (digest string, err error) {
	sum := sha256.New()
	zipped := gzip.NewWriter(io.MultiWriter(w, sum))
	archive := tar.NewWriter(zipped)
	slices.Sort(b.names)
	for _, name := range slices.Compact(b.names) {
		if err := context.Cause(ctx); err != nil {
			return "", err
		}
		if err := b.add(archive, name); err != nil {
			return "", fmt.Errorf("bundle %s: %w", name, err)
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		return "", err
	}

	return model.DigestFrom(sum), nil
}

// add adds a path. Nodes do not use times and owners, and equal content has equal
// bytes, so the header has none.
func (b *bundle) add(archive *tar.Writer, name string) error {
	if name == BundleManifest && b.manifest != nil {
		err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(b.manifest)), Mode: 0o644})
		if err == nil {
			_, err = archive.Write(b.manifest)
		}
		return err
	}
	info, err := b.root.Lstat(name)
	if err != nil {
		return err
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return b.file(archive, name)
	case mode.IsDir():
		return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755})
	case mode&fs.ModeSymlink != 0:
		target, err := b.link(name)
		if err != nil {
			return err
		}
		return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777})
	default:
		return fmt.Errorf("%w: only files, directories and symbolic links can", ErrNotBundled)
	}
}

func (b *bundle) file(archive *tar.Writer, name string) (err error) {
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
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	if n, err := io.Copy(archive, f); err != nil || n != info.Size() {
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
