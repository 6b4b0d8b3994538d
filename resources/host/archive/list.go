package archive

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
)

// Kind is the kind of a file in a tree.
type Kind string

// The kinds of files.
const (
	KindFile      Kind = "file"
	KindDirectory Kind = "directory"
	KindLink      Kind = "symbolic link"
	// KindHardLink is another name of a file in the tree.
	KindHardLink Kind = "hard link"
)

// File is a file, directory or link of a tree.
type File struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Mode has the permissions of a file or directory. A hard link has the mode of its file.
	Mode fs.FileMode `json:"mode,omitempty"`
	// Size and Digest, a hex SHA-256, describe a file. A hard link has the values of its file.
	Size   int64  `json:"size,omitempty"`
	Digest string `json:"-"`
	// Target is the target of a link, or the first name of a hard link.
	Target string `json:"target,omitempty"`
}

// Tree is the result of Unpack for an archive.
type Tree struct {
	// Files are sorted by name.
	Files []File
	// Refused is the error of Unpack. Files are the files that it unpacks before the error.
	Refused error
}

// List returns the result of Unpack for a tar.gz, and writes nothing. It has the same rules and limits. open,
// unless nil, returns a writer for the content of a file, or nil. The error comes from r, which List reads to
// its end, from a writer, or from ctx.
func List(ctx context.Context, r io.Reader, limits Limits, open func(name string) io.Writer) (Tree, error) {
	source := &sourceReader{ctx: ctx, r: r}
	p := &planner{ctx: ctx, open: open, buffer: make([]byte, readBuffer), files: map[string]*File{".": {Name: ".", Kind: KindDirectory}}}
	c := newChecker(nil, limits)
	refused := eachCompressed(source, TarGz, c.visit(p.add), c.drain)
	if p.failed == nil && source.failed == nil {
		// The checksum of r includes the bytes after the archive.
		_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, source, p.buffer)
	}
	if err := cmp.Or(p.failed, source.failed); err != nil {
		return Tree{}, err
	}
	delete(p.files, ".")
	out := Tree{Refused: refused, Files: make([]File, 0, len(p.files))}
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		out.Files = append(out.Files, *p.files[name])
	}

	return out, nil
}

// planner computes the tree that a writer creates in an empty directory.
type planner struct {
	ctx    context.Context
	files  map[string]*File
	open   func(name string) io.Writer
	buffer []byte
	// failed is the error of ctx or of a writer.
	failed error
}

func (p *planner) add(e entry, content io.Reader) error {
	if err := p.addParents(path.Dir(e.name)); err != nil {
		return err
	}
	there := p.files[e.name]
	switch {
	case there != nil && there.Kind == KindDirectory && e.kind == directory:
		if e.name != "." {
			there.Mode = freshMode(e)
		}
		return nil
	case there != nil:
		return fmt.Errorf("%w: it exists already", ErrUnsafeEntry)
	}
	f := &File{Name: e.name}
	switch e.kind {
	case directory:
		f.Kind, f.Mode = KindDirectory, freshMode(e)
	case symbolicLink:
		f.Kind, f.Target = KindLink, e.target
	case hardLink:
		first := p.files[e.target]
		if first == nil || first.Kind != KindFile && first.Kind != KindHardLink {
			return fmt.Errorf("%w: %q is not a file unpacked before", ErrUnsafeEntry, e.target)
		}
		*f = *first
		f.Name, f.Kind, f.Target = e.name, KindHardLink, cmp.Or(first.Target, first.Name)
	default:
		f.Kind, f.Mode = KindFile, e.mode&fs.ModePerm
		if err := p.read(f, content); err != nil {
			return err
		}
	}
	p.files[e.name] = f

	return nil
}

func (p *planner) addParents(name string) error {
	there := p.files[name]
	switch {
	case there != nil && there.Kind == KindDirectory:
		return nil
	case there != nil:
		return fmt.Errorf("%w: %s is not a directory", ErrUnsafeEntry, name)
	}
	if err := p.addParents(path.Dir(name)); err != nil {
		return err
	}
	p.files[name] = &File{Name: name, Kind: KindDirectory, Mode: 0o755}

	return nil
}

// freshMode returns the mode of a directory in which the process made all.
func freshMode(e entry) fs.FileMode { return e.mode&fs.ModePerm | 0o700 }

// read reads a content.
func (p *planner) read(f *File, content io.Reader) error {
	sum := sha256.New()
	out := io.Writer(sum)
	if p.open != nil {
		if w := p.open(f.Name); w != nil {
			out = io.MultiWriter(sum, w)
		}
	}
	n, err := io.CopyBuffer(planned{p, out}, content, p.buffer)
	f.Size, f.Digest = n, hex.EncodeToString(sum.Sum(nil))

	return err
}

// planned hashes the content of a file. It checks ctx, because zeros of a sparse file do not come from the
// source.
type planned struct {
	p   *planner
	out io.Writer
}

// Write hashes a part of the content and passes it on.
func (w planned) Write(b []byte) (int, error) {
	n, err := 0, context.Cause(w.p.ctx)
	if err == nil {
		n, err = w.out.Write(b)
	}
	if err != nil {
		w.p.failed = err
	}

	return n, err
}
