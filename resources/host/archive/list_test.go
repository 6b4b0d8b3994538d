package archive_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/tartest"
)

// trees are archives that List and Unpack must read alike.
func trees(t testing.TB) map[string][]byte {
	t.Helper()
	file, dir, link, hard := tartest.File, tartest.Directory, tartest.Link, tartest.HardLink
	special := func(flag byte) tartest.Entry {
		return tartest.Entry{Header: tar.Header{Typeflag: flag, Name: "special", Mode: 0o644}}
	}
	out := map[string][]byte{"PAX sparse": tartest.Sparse(t, "sparse", 70_000), "a bomb": tartest.Sparse(t, "bomb", 1<<50)}
	for name, entries := range map[string][]tartest.Entry{
		"plain":                      {file("manifest.yaml", "muster: {}\n", 0o644), file("run", "#!/bin/sh\n", 0o4755), file("empty", "", 0o400), dir("d", 0o555), dir("e/", 0o2700)},
		"parents":                    {file("a/b/c", "c", 0o600), dir("a/b", 0o711), dir("a/b", 0o500), dir(".", 0o700), dir("./", 0o777)},
		"old sparse":                 {tartest.OldSparse("sparse", "x", 0o640, 3_000), tartest.OldSparse("holes", "", 0o644, 10_000), tartest.OldSparse("full", "abc", 0o644, 3)},
		"links":                      {link("l", "d/f"), link("up/l", "../d"), file("d/f", "x", 0o644), link("dangling", "nothing")},
		"hard links":                 {file("f", "content", 0o755), hard("g", "f"), hard("d/h", "./g"), hard("i", "d//h")},
		"a hard link to itself":      {file("f", "x", 0o644), hard("f", "f")},
		"a hard link to none":        {hard("g", "f"), file("f", "x", 0o644)},
		"a hard link to a link":      {file("f", "x", 0o644), link("l", "f"), hard("g", "l")},
		"a hard link to a directory": {dir("d", 0o755), hard("g", "d")},
		"a hard link to a parent":    {file("d/f", "x", 0o644), hard("g", "d")},
		"names":                      {file("./a", "a", 0o644), file("b//c", "c", 0o644), file("b/./d", "d", 0o644), file("A", "A", 0o644), file("...", "x", 0o644), file("a\nb", "x", 0o644), file("\xff", "x", 0o644)},
		"a file twice":               {file("f", "x", 0o644), file("./f", "y", 0o644)},
		"a file over a directory":    {dir("d", 0o755), file("d", "x", 0o644)},
		"a file over a parent":       {file("d/f", "x", 0o644), file("d", "x", 0o644)},
		"a directory over a file":    {file("d", "x", 0o644), dir("d", 0o755)},
		"a file below a file":        {file("d", "x", 0o644), file("d/f", "x", 0o644)},
		"a link over a directory":    {dir("d", 0o755), link("d", "e"), file("d/f", "x", 0o644)},
		"a link over a parent":       {file("d/f", "x", 0o644), link("d", "e")},
		"a link over a file":         {file("f", "x", 0o644), link("f", "e")},
		"a file below a link":        {dir("e", 0o755), link("d", "e"), file("d/f", "x", 0o644)},
		"a directory over a link":    {dir("e", 0o755), link("d", "e"), dir("d", 0o755)},
		"the root as a file":         {file(".", "x", 0o644)},
		"the root as a link":         {link(".", "x")},
		"the root as a hard link":    {file("f", "x", 0o644), hard(".", "f")},
		"a directory with content":   {file("d/", "content", 0o700)},
		"long names":                 {file(strings.Repeat("n", 255), "x", 0o644), file(strings.Repeat("d/", 40)+"f", "x", 0o644), link("l", strings.Repeat("t", 255))},
		"a name that is too long":    {file(strings.Repeat("n", 256), "x", 0o644)},
		"a target that is too long":  {link("l", strings.Repeat("t/", 2048)+"t")},
		"a directory too long":       {file(strings.Repeat("n", 256)+"/f", "x", 0o644)},
		"too many directories":       {file(strings.Repeat("a/", 30)+"f", "x", 0o644), file(strings.Repeat("b/", 30)+"f", "x", 0o644)},
		"out of it":                  {file("f", "x", 0o644), file("../g", "x", 0o644)},
		"absolute":                   {file("f", "x", 0o644), file("/g", "x", 0o644)},
		"a link out of it":           {link("l", "../x")},
		"too large":                  {file("f", strings.Repeat("x", 1<<16), 0o644), file("g", "x", 0o644)},
		"a comment":                  {{Header: tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": "x"}}}, file("f", "x", 0o644)},
		"names for all":              {{Header: tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"path": "x"}}}, file("f", "x", 0o644)},
		"a device":                   {file("f", "x", 0o644), special(tar.TypeChar)},
		"a block device":             {special(tar.TypeBlock)},
		"a fifo":                     {special(tar.TypeFifo)},
		"nothing":                    nil,
	} {
		out[name] = tartest.Tar(t, entries...)
	}

	return out
}

// compared compares the tree that List returns with the tree that Unpack writes.
func compared(t *testing.T, packed []byte) archive.Tree {
	t.Helper()
	limits, dir, contents := archive.Limits{Bytes: 1 << 16, Entries: 50}, t.TempDir(), map[string]*bytes.Buffer{}
	listed, err := archive.List(t.Context(), bytes.NewReader(packed), limits, func(name string) io.Writer {
		contents[name] = &bytes.Buffer{}
		return contents[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	refused := archive.Unpack(t.Context(), bytes.NewReader(packed), dir, limits)
	if (listed.Refused == nil) != (refused == nil) {
		t.Fatalf("Unpack returns %v, List %v", refused, listed.Refused)
	}
	if refused != nil {
		return listed
	}
	want, got := map[string]string{}, map[string]string{}
	for name, item := range hosttest.Snapshot(t, dir) {
		if item.Mode.IsDir() {
			item.Size = 0
		}
		if item.Mode&fs.ModeSymlink != 0 {
			item.Mode, item.Size = fs.ModeSymlink, 0
		}
		want[name] = fmt.Sprint(item.Mode, item.Size, item.Digest, item.Target)
	}
	delete(want, ".")
	kinds := map[archive.Kind]fs.FileMode{archive.KindDirectory: fs.ModeDir, archive.KindLink: fs.ModeSymlink}
	for _, f := range listed.Files {
		digest, target := f.Digest, f.Target
		switch f.Kind {
		case archive.KindHardLink:
			first, err := os.Lstat(filepath.Join(dir, f.Target))
			second, err2 := os.Lstat(filepath.Join(dir, f.Name))
			if err := errors.Join(err, err2); err != nil || !os.SameFile(first, second) {
				t.Errorf("%s is no hard link to %s: %v", f.Name, f.Target, err)
			}
			target = ""
		case archive.KindFile:
			if sum := sha256.Sum256(contents[f.Name].Bytes()); hex.EncodeToString(sum[:]) != digest {
				t.Errorf("the content of %s is %q", f.Name, contents[f.Name])
			}
		}
		got[f.Name] = fmt.Sprint(kinds[f.Kind]|f.Mode, f.Size, digest, target)
	}
	if !maps.Equal(got, want) {
		t.Errorf("List returns\n%v\nUnpack leaves\n%v", got, want)
	}

	return listed
}

// TestListIsWhatUnpackLeaves: what operators see of a bundle is what nodes have of it.
func TestListIsWhatUnpackLeaves(t *testing.T) {
	t.Parallel()
	good := map[string]bool{}
	for name, content := range trees(t) {
		t.Run(name, func(t *testing.T) {
			good[name] = compared(t, tartest.Zip(t, content)).Refused == nil
		})
	}
	for _, name := range []string{"plain", "parents", "old sparse", "links", "hard links", "names", "a directory with content", "long names", "a comment", "nothing"} {
		if !good[name] {
			t.Errorf("%s is refused", name)
		}
	}
	for _, name := range []string{"a bomb", "too many directories", "a name that is too long", "a file twice", "names for all"} {
		if good[name] {
			t.Errorf("%s is not refused", name)
		}
	}
}

func FuzzList(f *testing.F) {
	for _, content := range trees(f) {
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) { compared(t, tartest.Zip(t, content)) })
}

// TestListOfFiles names kinds, and the first names of hard links.
func TestListOfFiles(t *testing.T) {
	t.Parallel()
	packed := tartest.Zip(t, trees(t)["hard links"])
	got, err := archive.List(t.Context(), bytes.NewReader(packed), archive.Limits{}, nil)
	sum := sha256.Sum256([]byte("content"))
	digest := hex.EncodeToString(sum[:])
	want := []archive.File{
		{Name: "d", Kind: archive.KindDirectory, Mode: 0o755},
		{Name: "d/h", Kind: archive.KindHardLink, Mode: 0o755, Size: 7, Digest: digest, Target: "f"},
		{Name: "f", Kind: archive.KindFile, Mode: 0o755, Size: 7, Digest: digest},
		{Name: "g", Kind: archive.KindHardLink, Mode: 0o755, Size: 7, Digest: digest, Target: "f"},
		{Name: "i", Kind: archive.KindHardLink, Mode: 0o755, Size: 7, Digest: digest, Target: "f"},
	}
	if err != nil || got.Refused != nil || !reflect.DeepEqual(got.Files, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestListEnds: at the bounds, at the end of ctx, and at an error of the source, which is
// read to its end.
func TestListEnds(t *testing.T) {
	t.Parallel()
	list := func(ctx context.Context, r io.Reader, limits archive.Limits, open func(string) io.Writer) (archive.Tree, error) {
		return archive.List(ctx, r, limits, open)
	}
	bomb := tartest.Zip(t, tartest.Sparse(t, "bomb", 1<<50))
	if tree, err := list(t.Context(), bytes.NewReader(bomb), archive.Limits{}, nil); err != nil || !errors.Is(tree.Refused, files.ErrTooLarge) {
		t.Errorf("a bomb: %v, %v", tree.Refused, err)
	}
	names := tartest.Zip(t, tartest.Tar(t, tartest.File("12345", "", 0o644), tartest.Link("1", "23456")))
	if tree, err := list(t.Context(), bytes.NewReader(names), archive.Limits{Names: 10}, nil); err != nil || !errors.Is(tree.Refused, archive.ErrTooManyEntries) || len(tree.Files) != 1 {
		t.Errorf("many names: %+v, %v", tree, err)
	}
	skipped := tartest.Zip(t, tartest.Tar(t, tartest.File("d/", strings.Repeat("x", 100), 0o644)))
	if tree, err := list(t.Context(), bytes.NewReader(skipped), archive.Limits{Bytes: 99}, nil); err != nil || !errors.Is(tree.Refused, files.ErrTooLarge) {
		t.Errorf("a content that is skipped: %+v, %v", tree, err)
	}
	stopped, lost := errors.New("interrupted"), errors.New("connection lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	writes := writer(func() error { cancel(stopped); return nil })
	sparse := tartest.Zip(t, tartest.Sparse(t, "zeros", 1<<30))
	if _, err := list(ctx, bytes.NewReader(sparse), archive.Limits{}, func(string) io.Writer { return writes }); !errors.Is(err, stopped) {
		t.Errorf("ctx ends within a file: %v", err)
	}
	if _, err := list(ctx, bytes.NewReader(bomb), archive.Limits{}, nil); !errors.Is(err, stopped) {
		t.Errorf("ctx has ended: %v", err)
	}
	failing := writer(func() error { return lost })
	if _, err := list(t.Context(), bytes.NewReader(sparse), archive.Limits{}, func(string) io.Writer { return failing }); !errors.Is(err, lost) {
		t.Errorf("a writer fails: %v", err)
	}
	for name, packed := range map[string][]byte{"good": names, "refused": bomb} {
		if _, err := list(t.Context(), io.MultiReader(bytes.NewReader(packed), iotest.ErrReader(lost)), archive.Limits{}, nil); !errors.Is(err, lost) {
			t.Errorf("%s, and the source fails behind it: %v", name, err)
		}
	}
}

// writer discards its bytes.
type writer func() error

func (w writer) Write(b []byte) (int, error) { return len(b), w() }
