package archive_test

import (
	"archive/tar"
	pkzip "archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/hosttest"
)

// member is an entry of a zip.
type member struct {
	name, content string
	mode          fs.FileMode
	change        func(*pkzip.FileHeader)
}

func packZip(t testing.TB, members ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	w := pkzip.NewWriter(&out)
	for _, m := range members {
		header := &pkzip.FileHeader{Name: m.name, Method: pkzip.Deflate}
		header.SetMode(m.mode)
		if m.change != nil {
			m.change(header)
		}
		f, err := w.CreateHeader(header)
		if err == nil {
			_, err = io.WriteString(f, m.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	return out.Bytes()
}

// stand is an open archive, and the directory target, where there is one.
type stand struct {
	*archive.Archive
	disk   *files.Disk
	target string
}

func newStand(t testing.TB, path string, content []byte, format archive.Format, target string) *stand {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	disk := files.New(files.Options{})
	a, err := archive.Open(t.Context(), disk, path, format)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })

	return &stand{a, disk, target}
}

func (s *stand) inspect(ctx context.Context, limits archive.Limits) (archive.Index, error) {
	root, err := os.OpenRoot(s.target)
	if errors.Is(err, fs.ErrNotExist) {
		return s.Inspect(ctx, nil, limits)
	}
	if err != nil {
		return archive.Index{}, err
	}
	defer root.Close()

	return s.Inspect(ctx, root, limits)
}

// inspect writes an archive and inspects it for the directory target next to it.
func inspect(t testing.TB, dir string, content []byte, format archive.Format, limits archive.Limits) (archive.Index, error) {
	t.Helper()

	return newStand(t, filepath.Join(dir, "archive"), content, format, filepath.Join(dir, "target")).inspect(t.Context(), limits)
}

func TestInspect(t *testing.T) {
	entries := []tar.Header{
		{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header"},
		directory("./", 0o755), directory("app/bin/", 0o755), regular("app/bin/tool", "12345", 0o4755), regular("app/conf", "678", 0o644),
		link("app/current", "bin/tool"), link("app/bin/up", "../conf"), regular("app/conf", "9", 0o644),
		{Typeflag: tar.TypeLink, Name: "app/tool2", Linkname: "app/bin/tool"},
	}
	members := []member{
		{name: "app/", mode: fs.ModeDir | 0o755},
		{name: "app/current", content: "bin/tool", mode: fs.ModeSymlink | 0o777},
		{name: "app/bin/tool", content: "12345", mode: 0o755},
		{name: `app\conf`, content: "6789", mode: 0o644},
	}
	for name, c := range map[string]struct {
		content []byte
		format  archive.Format
		want    archive.Index
	}{
		"tar":       {pack(t, entries...), archive.Tar, archive.Index{Entries: 9, Bytes: 9}},
		"tar.gz":    {zip(t, pack(t, entries...)), archive.TarGz, archive.Index{Entries: 9, Bytes: 9}},
		"zip":       {packZip(t, members...), archive.Zip, archive.Index{Entries: 4, Bytes: 9}},
		"empty tar": {pack(t), archive.Tar, archive.Index{}},
		"empty zip": {packZip(t), archive.Zip, archive.Index{}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "target"), 0o755); err != nil {
				t.Fatal(err)
			}
			before := hosttest.Snapshot(t, filepath.Join(dir, "target"))
			got, err := inspect(t, dir, c.content, c.format, archive.Limits{Bytes: 9, Entries: 9})
			if err != nil || got != c.want {
				t.Errorf("it is %+v, want %+v: %v", got, c.want, err)
			}
			if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, filepath.Join(dir, "target"))); len(diff) > 0 {
				t.Errorf("it changed the target: %v", diff)
			}
		})
	}
}

func TestInspectRefusesTars(t *testing.T) {
	for name, c := range map[string]struct {
		entries []tar.Header
		is      error
	}{
		"an absolute name":          {[]tar.Header{regular("/abs", "x", 0o644)}, archive.ErrUnsafeEntry},
		"an absolute directory":     {[]tar.Header{directory("/abs", 0o755)}, archive.ErrUnsafeEntry},
		"a name that goes up":       {[]tar.Header{regular("../up", "x", 0o644)}, archive.ErrUnsafeEntry},
		"a name with .. inside":     {[]tar.Header{regular("a/../b", "x", 0o644)}, archive.ErrUnsafeEntry},
		"an absolute link":          {[]tar.Header{link("l", "/etc/passwd")}, archive.ErrUnsafeEntry},
		"a link that goes up":       {[]tar.Header{link("l", "../out")}, archive.ErrUnsafeEntry},
		"a link through a link":     {[]tar.Header{link("a/b/top", "../.."), link("l", "a/b/top/../out")}, archive.ErrUnsafeEntry},
		"a file through a link":     {[]tar.Header{directory("d", 0o755), link("l", "d"), regular("l/file", "x", 0o644)}, archive.ErrUnsafeEntry},
		"a file below a link":       {[]tar.Header{directory("d/e", 0o755), link("l", "d"), regular("l/e/file", "x", 0o644)}, archive.ErrUnsafeEntry},
		"a file over a link":        {[]tar.Header{link("l", "other"), regular("l", "x", 0o644)}, archive.ErrUnsafeEntry},
		"a link over a directory":   {[]tar.Header{regular("d/file", "x", 0o644), link("d", "other")}, archive.ErrUnsafeEntry},
		"a directory over a link":   {[]tar.Header{link("l", "other"), directory("l", 0o755)}, archive.ErrUnsafeEntry},
		"a hard link that goes up":  {[]tar.Header{{Typeflag: tar.TypeLink, Name: "h", Linkname: "../secret"}}, archive.ErrUnsafeEntry},
		"an absolute hard link":     {[]tar.Header{{Typeflag: tar.TypeLink, Name: "h", Linkname: "/etc/shadow"}}, archive.ErrUnsafeEntry},
		"a hard link to a link":     {[]tar.Header{link("a/l", "../x"), {Typeflag: tar.TypeLink, Name: "h", Linkname: "a/l"}}, archive.ErrUnsafeEntry},
		"a hard link through one":   {[]tar.Header{link("l", "d"), {Typeflag: tar.TypeLink, Name: "h", Linkname: "l/x"}}, archive.ErrUnsafeEntry},
		"a character device":        {[]tar.Header{{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3}}, archive.ErrEntryType},
		"a block device":            {[]tar.Header{{Typeflag: tar.TypeBlock, Name: "sda", Devmajor: 8}}, archive.ErrEntryType},
		"a fifo":                    {[]tar.Header{{Typeflag: tar.TypeFifo, Name: "fifo"}}, archive.ErrEntryType},
		"a name too deep":           {[]tar.Header{regular(strings.Repeat("a/", 256)+"x", "x", 0o644)}, archive.ErrUnsafeEntry},
		"a name longer than a path": {[]tar.Header{regular(strings.Repeat(strings.Repeat("a", 200)+"/", 21)+"x", "x", 0o644)}, archive.ErrUnsafeEntry},
		"a directory without end":   {[]tar.Header{directory(strings.Repeat("a/", 100_000)+"x", 0o755)}, archive.ErrUnsafeEntry},
		"a hard link to one":        {[]tar.Header{{Typeflag: tar.TypeLink, Name: "h", Linkname: strings.Repeat("a/", 100_000) + "x"}}, archive.ErrUnsafeEntry},
		"more bytes than allowed":   {[]tar.Header{regular("a", strings.Repeat("x", 600), 0o644), regular("b", strings.Repeat("x", 600), 0o644)}, files.ErrTooLarge},
		"more entries than allowed": {[]tar.Header{directory("a", 0o755), directory("b", 0o755), directory("c", 0o755), directory("d", 0o755)}, archive.ErrTooManyEntries},
	} {
		t.Run(name, func(t *testing.T) {
			for _, format := range []archive.Format{archive.Tar, archive.TarGz} {
				content := pack(t, c.entries...)
				if format == archive.TarGz {
					content = zip(t, content)
				}
				_, err := inspect(t, t.TempDir(), content, format, archive.Limits{Bytes: 1000, Entries: 3})
				if !errors.Is(err, c.is) {
					t.Errorf("%s: the error is %v, want %v", format, err, c.is)
				}
				if last := c.entries[len(c.entries)-1].Name; err == nil || !strings.Contains(err.Error(), last) {
					t.Errorf("%s: the error does not name %q: %v", format, last, err)
				}
			}
		})
	}
}

// withExtra gives an entry another name in the field that unzip prefers.
func withExtra(name string) func(*pkzip.FileHeader) {
	return func(h *pkzip.FileHeader) {
		field := binary.LittleEndian.AppendUint16(nil, 0x7075)
		field = binary.LittleEndian.AppendUint16(field, uint16(5+len(name)))
		h.Extra = append(append(field, 1, 0, 0, 0, 0), name...)
	}
}

func TestInspectRefusesZips(t *testing.T) {
	kind := func(kind uint32) func(*pkzip.FileHeader) {
		return func(h *pkzip.FileHeader) { h.ExternalAttrs = (kind | 0o644) << 16 }
	}
	for name, c := range map[string]struct {
		members []member
		is      error
	}{
		"an absolute name":          {[]member{{name: "/abs"}}, archive.ErrUnsafeEntry},
		"a name that goes up":       {[]member{{name: "../up"}}, archive.ErrUnsafeEntry},
		"a name of Windows":         {[]member{{name: `..\up`}}, archive.ErrUnsafeEntry},
		"a root of Windows":         {[]member{{name: `\up`}}, archive.ErrUnsafeEntry},
		"two names":                 {[]member{{name: "good", change: withExtra("../up")}}, archive.ErrUnsafeEntry},
		"an absolute link":          {[]member{{name: "l", content: "/etc/passwd", mode: fs.ModeSymlink | 0o777}}, archive.ErrUnsafeEntry},
		"a link that goes up":       {[]member{{name: "l", content: "../out", mode: fs.ModeSymlink | 0o777}}, archive.ErrUnsafeEntry},
		"a link without a system":   {[]member{{name: "l", content: "../out", change: kind(0o120000)}}, archive.ErrUnsafeEntry},
		"a link of a whole page":    {[]member{{name: "l", content: strings.Repeat("x", 5000), mode: fs.ModeSymlink | 0o777}}, archive.ErrUnsafeEntry},
		"a file through a link":     {[]member{{name: "l/file"}, {name: "l", content: "d", mode: fs.ModeSymlink | 0o777}}, archive.ErrUnsafeEntry},
		"a file over a link":        {[]member{{name: "l"}, {name: "l", content: "d", mode: fs.ModeSymlink | 0o777}}, archive.ErrUnsafeEntry},
		"a device":                  {[]member{{name: "null", change: kind(0o020000)}}, archive.ErrEntryType},
		"a fifo":                    {[]member{{name: "fifo", change: kind(0o010000)}}, archive.ErrEntryType},
		"an encrypted file":         {[]member{{name: "f", change: func(h *pkzip.FileHeader) { h.Flags |= 1 }}}, archive.ErrEntryType},
		"more bytes than allowed":   {[]member{{name: "a", content: strings.Repeat("x", 600)}, {name: "b", content: strings.Repeat("x", 600)}}, files.ErrTooLarge},
		"more entries than allowed": {[]member{{name: "a"}, {name: "b"}, {name: "c"}}, archive.ErrTooManyEntries},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := inspect(t, t.TempDir(), packZip(t, c.members...), archive.Zip, archive.Limits{Bytes: 1000, Entries: 2}); !errors.Is(err, c.is) {
				t.Errorf("the error is %v, want %v", err, c.is)
			}
		})
	}
}

// TestInspectOfWhatStandsInTheTarget has links on the disk.
func TestInspectOfWhatStandsInTheTarget(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	err := errors.Join(os.MkdirAll(filepath.Join(target, "real"), 0o755), os.Mkdir(filepath.Join(dir, "outside"), 0o755),
		os.Symlink("real", filepath.Join(target, "in")), os.Symlink("../outside", filepath.Join(target, "out")),
		os.Symlink("nowhere", filepath.Join(target, "dangling")), os.Symlink("..", filepath.Join(target, "real", "up")))
	if err != nil {
		t.Fatal(err)
	}
	for name, refused := range map[string]bool{
		"file": false, "real/file": false, "in/file": false, "in/up/real/file": false, "new/file": false, "out": false,
		"out/file": true, "in/up/out/deep/file": true, "dangling/file": true,
	} {
		_, err := inspect(t, dir, pack(t, regular(name, "x", 0o644)), archive.Tar, archive.Limits{})
		if errors.Is(err, archive.ErrUnsafeEntry) != refused || !refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := inspect(t, dir, pack(t, directory("out", 0o755)), archive.Tar, archive.Limits{}); !errors.Is(err, archive.ErrUnsafeEntry) {
		t.Errorf("a directory over a link that leads out: %v", err)
	}
	if _, err := inspect(t, dir, pack(t, tar.Header{Typeflag: tar.TypeLink, Name: "h", Linkname: "out/x"}), archive.Tar, archive.Limits{}); !errors.Is(err, archive.ErrUnsafeEntry) {
		t.Errorf("a hard link through a link that leads out: %v", err)
	}
}

func TestInspectOfWhatIsNoArchive(t *testing.T) {
	plain := pack(t, regular("one", strings.Repeat("content", 1000), 0o644), regular("two", "x", 0o644))
	zipped, pk := zip(t, plain), packZip(t, member{name: "file", content: strings.Repeat("content", 1000)})
	change := func(b []byte, at int) []byte {
		b = bytes.Clone(b)
		b[(at+len(b))%len(b)] ^= 1
		return b
	}
	for name, c := range map[string]struct {
		content []byte
		format  archive.Format
		says    string
	}{
		"nothing, tar.gz":          {nil, archive.TarGz, "as tar.gz it is not a valid archive: EOF, it is empty"},
		"nothing, zip":             {nil, archive.Zip, "as zip it is not a valid archive: zip: not a valid zip file, it is empty"},
		"nothing, tar":             {nil, archive.Tar, "was cut short, it is empty"},
		"a page, tar.gz":           {[]byte("<!DOCTYPE html><title>Sign in</title>"), archive.TarGz, "its content looks like text/html"},
		"a page, tar":              {[]byte("<!DOCTYPE html><title>Sign in</title>"), archive.Tar, "its content looks like text/html"},
		"a page, zip":              {[]byte("<!DOCTYPE html><title>Sign in</title>"), archive.Zip, "its content looks like text/html"},
		"a zip as tar.gz":          {pk, archive.TarGz, "application/zip"},
		"a tar.gz as tar":          {zipped, archive.Tar, "application/x-gzip"},
		"a tar.gz as zip":          {zipped, archive.Zip, "application/x-gzip"},
		"a tar as tar.gz":          {plain, archive.TarGz, "gzip: invalid header"},
		"tar.gz cut short":         {zipped[:len(zipped)/2], archive.TarGz, "unexpected EOF"},
		"tar cut within a file":    {plain[:2000], archive.Tar, "unexpected EOF"},
		"tar cut between files":    {plain[:512+7168], archive.Tar, "the end mark is missing"},
		"zip cut short":            {pk[:len(pk)-10], archive.Zip, "not a valid zip file"},
		"tar.gz, a wrong checksum": {change(zipped, -6), archive.TarGz, "checksum"},
		"zip, damaged":             {change(pk, 50), archive.Zip, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := inspect(t, t.TempDir(), c.content, c.format, archive.Limits{})
			if !errors.Is(err, archive.ErrNotArchive) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v, without %q", err, c.says)
			}
		})
	}
	stopped := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	for format, content := range map[archive.Format][]byte{archive.Tar: plain, archive.TarGz: zipped, archive.Zip: pk} {
		if _, err := newStand(t, filepath.Join(t.TempDir(), "archive"), content, format, t.TempDir()).inspect(ctx, archive.Limits{}); !errors.Is(err, stopped) {
			t.Errorf("%s, a context that has ended: %v", format, err)
		}
	}
}

// TestInspectOfBombs has archives that say less than they hold, and more than they may.
func TestInspectOfBombs(t *testing.T) {
	header := regular("bomb", "", 0o644)
	header.Size = 1 << 40
	var packed bytes.Buffer
	if err := tar.NewWriter(&packed).WriteHeader(&header); err != nil {
		t.Fatal(err)
	}
	limits := archive.Limits{Bytes: 1 << 20}
	if _, err := inspect(t, t.TempDir(), zip(t, packed.Bytes()), archive.TarGz, limits); !errors.Is(err, files.ErrTooLarge) {
		t.Errorf("a large file: %v", err)
	}
	padding := zip(t, append(pack(t, regular("f", "x", 0o644)), make([]byte, 4<<20)...))
	if _, err := inspect(t, t.TempDir(), padding, archive.TarGz, limits); !errors.Is(err, files.ErrTooLarge) {
		t.Errorf("padding without end: %v", err)
	}
	lying := packZip(t, member{name: "bomb", content: string(make([]byte, 4<<20))})
	at := bytes.LastIndex(lying, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(lying[at+24:], 10)
	if _, err := inspect(t, t.TempDir(), lying, archive.Zip, limits); err == nil {
		t.Error("a zip that says less than it holds is taken")
	}
	if _, err := inspect(t, t.TempDir(), packZip(t, member{name: "bomb", content: string(make([]byte, 4<<20))}), archive.Zip, limits); !errors.Is(err, files.ErrTooLarge) {
		t.Error("a zip with more than is allowed is taken")
	}
	dir := t.TempDir()
	hole, err := os.Create(filepath.Join(dir, "hole"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(hole.Truncate(8<<30), hole.Close()); err != nil {
		t.Fatal(err)
	}
	result, err := command.New(nil).Run(t.Context(), command.Command{Argv: []string{"tar", "-cSf", "sparse.tar", "hole"}, Dir: dir})
	if err != nil || result.ExitCode != 0 {
		t.Fatal(err, result.Stderr)
	}
	sparse, err := os.ReadFile(filepath.Join(dir, "sparse.tar"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inspect(t, dir, sparse, archive.Tar, limits); !errors.Is(err, files.ErrTooLarge) {
		t.Errorf("a file that is all hole: %v", err)
	}
}

// TestInspectOfGlobalHeaders has headers that would rename all later entries.
func TestInspectOfGlobalHeaders(t *testing.T) {
	raw := func(entries ...[]byte) []byte {
		return append(slices.Concat(entries...), pack(t)...)
	}
	entry := func(kind byte, name, content string) []byte {
		h := tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o644, Format: tar.FormatUSTAR}
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		_, err := io.WriteString(w, content)
		if err := errors.Join(err, w.Flush()); err != nil {
			t.Fatal(err)
		}
		return retyped(b.Bytes(), kind)
	}
	for name, content := range map[string][]byte{
		"a global name":             raw(entry('g', "g", "13 path=../x\n"), entry('0', "x", "x")),
		"a global link":             raw(entry('g', "g", "17 linkpath=/etc\n"), entry('0', "x", "x")),
		"an extended header of Sun": raw(entry('X', "x", "13 path=../x\n"), entry('0', "x", "x")),
	} {
		if _, err := inspect(t, t.TempDir(), content, archive.Tar, archive.Limits{}); !errors.Is(err, archive.ErrEntryType) && !errors.Is(err, archive.ErrUnsafeEntry) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := inspect(t, t.TempDir(), raw(entry('g', "g", "13 comment=x\n"), entry('x', "x", "15 path=better\n"), entry('0', "x", "x")), archive.Tar, archive.Limits{}); err != nil {
		t.Errorf("what git and pax write: %v", err)
	}
}

// retyped gives the first header of a tar another kind.
func retyped(b []byte, kind byte) []byte {
	copy(b[148:], "        ")
	b[156] = kind
	total := 0
	for _, c := range b[:512] {
		total += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", total))

	return b
}
