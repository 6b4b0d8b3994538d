package assign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/host/archive"
)

// ErrRefused means that nodes refuse a bundle.
var ErrRefused = errors.New("nodes refuse this bundle")

// OpenBundle opens a bundle by its digest. The reader returns an error at the end if the digest
// does not match.
type OpenBundle func(ctx context.Context, digest string) (io.ReadCloser, error)

// Content is the content of a revision: the terms, and the manifest or the files of a bundle.
type Content struct {
	label, terms string
	files        []File
}

// Files returns its files by name: a manifest without a bundle is manifest.yaml.
func (c Content) Files() []File { return c.files }

// As returns the content with another name in diffs.
func (c Content) As(label string) Content {
	c.label = label

	return c
}

// ReadContent reads the content of a revision. The error wraps ErrRefused for a bundle that nodes refuse. The
// content then lists the files before the refused entry.
func ReadContent(ctx context.Context, e model.Entry, open OpenBundle) (Content, error) {
	c := Content{label: fmt.Sprintf("%s@%d", e.Key, e.Revision)}
	if e.Deleted {
		return c, nil
	}
	a := assignment(e)
	var err error
	if c.terms, err = termsOf(a); err != nil {
		return c, err
	}
	if a.Bundle == "" {
		c.files = []File{manifestFile(a.Manifest)}
		return c, nil
	}
	var t texts
	tree, err := list(ctx, a.Bundle, open, t.open)
	if err != nil {
		return c, err
	}
	t.end()
	for _, f := range tree.Files {
		c.files = append(c.files, newFile(f, t.kept))
	}

	return c, refusal(tree)
}

// WriteContent writes one file of a revision. The error wraps model.ErrNotFound for a missing file,
// and ErrRefused as in ReadContent.
func WriteContent(ctx context.Context, e model.Entry, open OpenBundle, name string, w io.Writer) error {
	name = path.Clean(name)
	missing := fmt.Errorf("%s revision %d has no file %s: %w", e.Key, e.Revision, quoted(name), model.ErrNotFound)
	if e.Deleted {
		return missing
	}
	a := assignment(e)
	if a.Bundle == "" {
		if name != model.BundleManifest {
			return missing
		}
		_, err := io.WriteString(w, a.Manifest)
		return err
	}
	tree, err := list(ctx, a.Bundle, open, func(file string) io.Writer {
		if file != name {
			return nil
		}
		return w
	})
	if err != nil {
		return err
	}
	if err := refusal(tree); err != nil {
		return err
	}
	for _, f := range tree.Files {
		switch {
		case f.Name != name:
		case f.Kind == archive.KindFile:
			return nil
		default:
			return fmt.Errorf("%s, which has no content", newFile(f, nil))
		}
	}

	return missing
}

// assignment decodes a revision like nodes. A bare manifest has no terms. A rejected value has no terms, and
// its text is the manifest to show.
func assignment(e model.Entry) model.Assignment {
	a, problems := document.DecodeAssigned(e.Key, e.Value)
	if problems != nil {
		a.Manifest = Readable(e.Key, e.Value)
	}

	return a.Assignment
}

// termsOf describes the terms of an assignment, empty for none.
func termsOf(a model.Assignment) (string, error) {
	a.Protocol, a.Name, a.Digest, a.Issued, a.Manifest, a.Bundle = "", "", "", time.Time{}, "", ""
	if reflect.ValueOf(a).IsZero() {
		return "", nil
	}
	a.Protocol = model.ProtocolAssignment
	text, err := AssignmentYAML(a)

	return strings.TrimPrefix(string(text), "protocol: "+model.ProtocolAssignment+"\n"), err
}

// list lists a bundle with the limits of nodes.
func list(ctx context.Context, digest string, open OpenBundle, each func(name string) io.Writer) (archive.Tree, error) {
	r, err := open(ctx, digest)
	if err != nil {
		return archive.Tree{}, err
	}
	tree, err := archive.List(ctx, r, archive.Limits{}, each)

	return tree, errors.Join(err, r.Close())
}

// refusal returns the reason why nodes refuse a bundle.
func refusal(tree archive.Tree) error {
	if tree.Refused == nil {
		return nil
	}

	return fmt.Errorf("%w: %w", ErrRefused, tree.Refused)
}

// File is a file, directory or link.
type File struct {
	Name string       `json:"name"`
	Kind archive.Kind `json:"kind"`
	// Mode is the permissions of a file or directory in octal digits.
	Mode string `json:"mode,omitempty"`
	// Size and Digest are the size and digest of the content of a file, and of a hard link to it.
	Size   int64  `json:"size"`
	Digest string `json:"digest,omitempty"`
	// Target is the target of a link.
	Target string `json:"target,omitempty"`
	// Text is the content of a text file. Omitted is the reason why the content is missing.
	Text    string `json:"-"`
	Omitted string `json:"-"`
}

// Default modes of files and directories, which are not shown.
const (
	fileMode      = "0644"
	directoryMode = "0755"
)

func newFile(f archive.File, kept map[string]text) File {
	out := File{Name: f.Name, Kind: f.Kind, Size: f.Size, Target: f.Target}
	if f.Kind != archive.KindLink {
		out.Mode = fmt.Sprintf("%04o", f.Mode)
	}
	if f.Digest != "" {
		out.Digest = model.DigestPrefix + f.Digest
	}
	if f.Kind == archive.KindFile {
		out.Text, out.Omitted = kept[f.Name].text, kept[f.Name].omitted
	}

	return out
}

// manifestFile returns the file of a manifest without a bundle.
func manifestFile(manifest string) File {
	return File{
		Name: model.BundleManifest, Kind: archive.KindFile, Mode: fileMode, Size: int64(len(manifest)),
		Digest: model.DigestOf([]byte(manifest)), Text: manifest,
	}
}

// String describes the file in one line.
func (f File) String() string {
	words := []string{quoted(f.Name), f.size()}
	switch f.Kind {
	case archive.KindLink:
		words = []string{quoted(f.Name) + " -> " + quoted(f.Target)}
	case archive.KindDirectory:
		words = []string{quoted(f.Name + "/")}
	case archive.KindHardLink:
		words = append(words, f.kind())
	}
	return strings.Join(append(words, f.notes()...), ", ")
}

// size describes the size of the content.
func (f File) size() string {
	if f.Size == 1 {
		return "1 byte"
	}

	return fmt.Sprintf("%d bytes", f.Size)
}

// kind returns the kind of the file, empty for a regular file.
func (f File) kind() string {
	switch f.Kind {
	case archive.KindFile:
		return ""
	case archive.KindHardLink:
		return string(f.Kind) + " to " + quoted(f.Target)
	default:
		return string(f.Kind)
	}
}

// notes describes unusual properties of a file.
func (f File) notes() []string {
	var out []string
	usual := fileMode
	if f.Kind == archive.KindDirectory {
		usual = directoryMode
	}
	if f.Mode != "" && f.Mode != usual {
		out = append(out, "mode "+f.Mode)
	}
	if f.Omitted != "" {
		out = append(out, f.Omitted)
	}

	return out
}

// body returns the text that a diff compares.
func (f File) body() string {
	switch {
	case f.Kind == archive.KindLink:
		return "-> " + quoted(f.Target) + "\n"
	case f.Kind == archive.KindHardLink || f.Omitted != "":
		return f.Digest + ", " + f.size() + "\n"
	default:
		return f.Text
	}
}

// Argument returns the name quoted for a shell.
func (f File) Argument() string {
	name := f.Name
	if strings.HasPrefix(name, "-") {
		name = "./" + name
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune(plain, r) }) {
		return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}

	return name
}

const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./_-+@%="

// quoted returns a name, quoted if it is ambiguous.
func quoted(name string) string {
	if q := strconv.Quote(name); q != `"`+name+`"` || strings.ContainsAny(name, " ,(") {
		return q
	}

	return name
}

// Limits of the shown texts: of one text and of a bundle.
const (
	maxText  = 1 << 20
	maxTexts = 8 << 20
)

// Reasons for omitted texts.
const (
	notText = "not a text"
	tooLong = "longer than 1 MiB"
	tooMuch = "behind 8 MiB of other texts"
)

// text is a text, or the reason why it is omitted.
type text struct{ text, omitted string }

// texts collects the texts of a bundle's files, one file at a time.
type texts struct {
	kept  map[string]text
	bytes int
	// name and now are the current file.
	name    string
	now     strings.Builder
	omitted string
}

// open begins a file.
func (t *texts) open(name string) io.Writer {
	t.end()
	t.name = name

	return t
}

// Write adds a part of the file, unless its text is omitted.
func (t *texts) Write(b []byte) (int, error) {
	switch {
	case t.omitted != "":
	case bytes.IndexByte(b, 0) >= 0:
		t.omitted = notText
	case t.now.Len()+len(b) > maxText:
		t.omitted = tooLong
	case t.bytes+t.now.Len()+len(b) > maxTexts:
		t.omitted = tooMuch
	default:
		return t.now.Write(b)
	}
	t.now.Reset()

	return len(b), nil
}

// end ends the file.
func (t *texts) end() {
	if t.name == "" {
		return
	}
	if t.kept == nil {
		t.kept = map[string]text{}
	}
	if !utf8.ValidString(t.now.String()) {
		t.omitted = notText
		t.now.Reset()
	}
	t.kept[t.name] = text{t.now.String(), t.omitted}
	t.bytes += t.now.Len()
	t.name, t.omitted = "", ""
	t.now.Reset()
}

// Diff returns a unified diff of the terms and of each differing file, empty for none. Changes of kind, mode
// and existence follow the name. It returns the error of ctx.
func (c Content) Diff(ctx context.Context, to Content) (string, error) {
	var out strings.Builder
	out.WriteString(udiff.Unified(c.label+" (terms)", to.label+" (terms)", c.terms, to.terms))
	before, after := c.byName(), to.byName()
	names := slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := context.Cause(ctx); err != nil {
			return "", err
		}
		a, there := before[name]
		b, stays := after[name]
		if there && stays && a.is(b) {
			continue
		}
		from, now := c.label+" "+quoted(name), to.label+" "+quoted(name)
		was, is := state(a, there), state(b, stays)
		if was != is {
			from, now = from+was, now+is
		}
		if diff := udiff.Unified(from, now, a.body(), b.body()); diff != "" {
			out.WriteString(diff)
			continue
		}
		out.WriteString("--- " + from + "\n+++ " + now + "\n")
	}

	return out.String(), nil
}

// Lines returns the number of added and removed lines in terms and text files.
func (c Content) Lines(to Content) (added, removed int) {
	count := func(before, after string) {
		// The only error is about edits that do not fit the text.
		diff, _ := udiff.ToUnifiedDiff("", "", before, udiff.Lines(before, after), 0)
		for _, h := range diff.Hunks {
			for _, l := range h.Lines {
				switch l.Kind {
				case udiff.Insert:
					added++
				case udiff.Delete:
					removed++
				}
			}
		}
	}
	count(c.terms, to.terms)
	before, after := c.byName(), to.byName()
	for name, f := range before {
		count(f.Text, after[name].Text)
	}
	for name, f := range after {
		if _, both := before[name]; !both {
			count("", f.Text)
		}
	}

	return added, removed
}

func (c Content) byName() map[string]File {
	out := map[string]File{}
	for _, f := range c.files {
		out[f.Name] = f
	}

	return out
}

// is reports whether two files of a name are equal.
func (f File) is(other File) bool {
	f.Text, f.Omitted, other.Text, other.Omitted = "", "", "", ""

	return f == other
}

// state returns the text after a name.
func state(f File, there bool) string {
	words := f.notes()
	if kind := f.kind(); kind != "" {
		words = slices.Insert(words, 0, kind)
	}
	switch {
	case !there:
		return " (none)"
	case len(words) == 0:
		return ""
	default:
		return " (" + strings.Join(words, ", ") + ")"
	}
}
