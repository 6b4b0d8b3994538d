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

// Kind is what a file of a tree is.
type Kind string

// The kinds of files.
const (
	KindFile      Kind = "file"
	KindDirectory Kind = "directory"
	KindLink      Kind = "symbolic link"
	// KindHardLink is a further name of a file of the tree.
	KindHardLink Kind = "hard link"
)

// File is a file, directory or link of a tree.
type File struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Mode is the permissions of a file or directory; a hard link has those of its file.
	Mode fs.FileMode `json:"mode,omitempty"`
	// Size and Digest, hexadecimal SHA-256, are those of a file, and of a hard link to it.
	Size   int64  `json:"size,omitempty"`
	Digest string `json:"-"`
	// Target is where a link leads, and the first name of a hard link.
	Target string `json:"target,omitempty"`
}

// Tree is what Unpack makes of an archive.
type Tree struct {
	// Files are by name.
	Files []File
	// Refused is why Unpack refuses the archive; Files are what it has unpacked before.
	Refused error
}

// List returns what Unpack makes of a tar.gz, and writes nothing: it reads by the same
// rules, with the same limits. open, if set, returns where the content of a file goes, nil
// for nowhere. The error is that of r, which is read to its end, of a writer, or of ctx.
func List(ctx context.Context, r io.Reader, limits Limits, open func(name string) io.Writer) (Tree, error) {
	source := &sourceReader{ctx: ctx, r: r}
	p := &planner{ctx: ctx, open: open, buffer: make([]byte, readBuffer), files: map[string]*File{".": {Name: ".", Kind: KindDirectory}}}
	c := newChecker(nil, limits)
	refused := eachCompressed(source, TarGz, c.visit(p.add), c.drain)
	if p.failed == nil && source.failed == nil {
		// What is behind the archive is part of the bytes that r checks.
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

// planner plans the tree that a writer makes of checked entries in an empty directory. It
// lives for one call.
type planner struct {
	ctx    context.Context
	files  map[string]*File
	open   func(name string) io.Writer
	buffer []byte
	// failed is the error of ctx or of where a content goes.
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

// planned is where a content goes. Zeros of a sparse file come from nowhere, so that the
// source does not see that ctx has ended.
type planned struct {
	p   *planner
	out io.Writer
}

// Write hashes and hands on a part of a content.
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
