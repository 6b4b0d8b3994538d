package archive_test

import (
	"archive/tar"
	pkzip "archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/hosttest"
)

// day is a time that an archive of either format can hold.
var day = time.Date(2001, 9, 9, 1, 46, 40, 0, time.Local)

func (s *stand) extract(t testing.TB, limits archive.Limits, preserve bool) error {
	t.Helper()
	_, err := s.Extract(t.Context(), s.disk, s.target, limits, archive.Options{
		Preserve: preserve, ResolveOwner: func(archive.Owner) (uid, gid int) { return os.Geteuid(), os.Getegid() },
	})

	return err
}

// extractInto unpacks content into a directory.
func extractInto(t testing.TB, target string, content []byte, format archive.Format, preserve bool) error {
	t.Helper()

	return newStand(t, filepath.Join(t.TempDir(), "archive"), content, format, target).extract(t, archive.Limits{}, preserve)
}

func dated(entries ...tar.Header) []tar.Header {
	for i := range entries {
		entries[i].ModTime = day
	}

	return entries
}

// TestExtractNamesTheFile of an error by its path on the machine.
func TestExtractNamesTheFile(t *testing.T) {
	for name, entry := range map[string]tar.Header{"a file": regular("there", "x", 0o644), "a link": link("there", "nothing"), "a hard link": hard("there", "file")} {
		target := t.TempDir()
		if err := errors.Join(os.MkdirAll(target+"/there/full", 0o755), os.WriteFile(target+"/file", nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		err := extractInto(t, target, pack(t, entry), archive.Tar, false)
		if err == nil || !strings.Contains(err.Error(), " "+target+"/there: ") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

// TestExtractReplaces has everything that may be in the place of an entry.
func TestExtractReplaces(t *testing.T) {
	entries := dated(
		regular("over-file", "new", 0o640), regular("over-link", "new", 0o600), regular("over-dir", "new", 0o600), directory("dir-over-file", 0o700), directory("dir-over-link", 0o700),
		link("link-over-file", "over-file"), link("link-over-dir", "over-file"), hard("hard-over-file", "over-file"), hard("over-file", "over-file"), regular("through/file", "new", 0o644),
		regular("fixed/file", "x", 0o444), directory("fixed", 0o555), directory("made", 0o555), regular("made/file", "x", 0o444), directory("made/below", 0o500))
	target := t.TempDir()
	at := func(name string) string { return filepath.Join(target, name) }
	write := func(name string) error { return os.WriteFile(at(name), []byte("old"), 0o666) }
	err := errors.Join(write("over-file"), os.Link(at("over-file"), at("other-name")), os.Symlink("over-link-target", at("over-link")), write("over-link-target"), os.Mkdir(at("over-dir"), 0o755), write("dir-over-file"),
		os.Mkdir(at("real"), 0o755), os.Symlink("real", at("dir-over-link")), write("link-over-file"), os.Mkdir(at("link-over-dir"), 0o755), write("hard-over-file"), os.Symlink("real", at("through")))
	if err != nil {
		t.Fatal(err)
	}
	if err := extractInto(t, target, pack(t, entries...), archive.Tar, false); err != nil {
		t.Fatal(err)
	}
	tree := hosttest.Snapshot(t, target)
	for name, want := range map[string]string{
		"over-file": "new", "over-link": "new", "over-dir": "new", "hard-over-file": "new", "real/file": "new", "other-name": "old", "over-link-target": "old", "fixed/file": "x", "made/file": "x",
	} {
		if got, err := os.ReadFile(at(name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q: %v", name, got, err)
		}
	}
	for name, want := range map[string]fs.FileMode{
		"over-file": 0o640, "dir-over-file": fs.ModeDir | 0o700, "dir-over-link": fs.ModeDir | 0o700, "fixed": fs.ModeDir | 0o755, "made": fs.ModeDir | 0o555, "made/below": fs.ModeDir | 0o500,
	} {
		if got := tree[name].Mode; got != want {
			t.Errorf("%s has mode %v", name, got)
		}
		if info, err := os.Lstat(at(name)); err != nil || !info.ModTime().Equal(day) {
			t.Errorf("%s is of %v, %v", name, info.ModTime(), err)
		}
	}
	if tree["link-over-file"].Target != "over-file" || tree["link-over-dir"].Target != "over-file" || tree["through"].Target != "real" {
		t.Errorf("links: %+v", tree)
	}
	if err := os.Chmod(at("made"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestExtractRefusesWhatIsInTheWay has what tar and unzip do not replace either.
func TestExtractRefusesWhatIsInTheWay(t *testing.T) {
	for name, entry := range map[string]tar.Header{
		"a file over a full directory": regular("full", "x", 0o644), "a link over one": link("full", "x"), "a file below a file": regular("file/below", "x", 0o644),
		"a hard link to nothing": hard("new", "nothing"), "a hard link to a link": hard("new", "link"), "a file in place of all": regular(".", "x", 0o644),
	} {
		target := t.TempDir()
		err := errors.Join(os.Mkdir(filepath.Join(target, "full"), 0o755), os.WriteFile(filepath.Join(target, "full", "kept"), nil, 0o644),
			os.WriteFile(filepath.Join(target, "file"), nil, 0o644), os.Symlink("full/kept", filepath.Join(target, "link")))
		if err != nil {
			t.Fatal(err)
		}
		before := hosttest.Snapshot(t, target)
		if err := extractInto(t, target, pack(t, entry), archive.Tar, false); err == nil || !strings.Contains(err.Error(), entry.Name) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, target)); len(diff) > 0 {
			t.Errorf("%s: %v", name, diff)
		}
	}
}

// TestExtractOfASparseFile has a file that is nearly all hole.
func TestExtractOfASparseFile(t *testing.T) {
	dir, target := t.TempDir(), t.TempDir()
	hole, err := os.Create(filepath.Join(dir, "hole"))
	if err != nil {
		t.Fatal(err)
	}
	_, written := hole.WriteAt([]byte("end"), 8<<20)
	if err := errors.Join(written, hole.Truncate(64<<20), hole.Close()); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"gnu", "posix"} {
		result, err := command.New(nil).Run(t.Context(), command.Command{Argv: []string{"tar", "-cSf", "sparse.tar", "--format", kind, "hole"}, Dir: dir})
		if err != nil || result.ExitCode != 0 {
			t.Fatal(err, result.Stderr)
		}
		content, err := os.ReadFile(filepath.Join(dir, "sparse.tar"))
		if err != nil {
			t.Fatal(err)
		}
		if err := extractInto(t, target, content, archive.Tar, false); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(target, "hole"))
		if err != nil {
			t.Fatal(err)
		}
		if hosttest.Snapshot(t, target)["hole"].Digest != hosttest.Snapshot(t, dir)["hole"].Digest || info.Sys().(*syscall.Stat_t).Blocks > 8<<10 {
			t.Errorf("%s: %d bytes in %d blocks", kind, info.Size(), info.Sys().(*syscall.Stat_t).Blocks)
		}
	}
}

// TestExtractOfTimesInAZip has times of DOS, which are local, and of Unix.
func TestExtractOfTimesInAZip(t *testing.T) {
	target := t.TempDir()
	content := packZip(t, member{name: "unix", change: func(h *pkzip.FileHeader) { h.Modified = day.Add(time.Second) }},
		member{name: "dos", change: func(h *pkzip.FileHeader) { h.Modified = day.UTC() }})
	// Without the extended time, the DOS time counts.
	content = bytes.ReplaceAll(content, []byte("dosUT"), []byte("dosXX"))
	if err := extractInto(t, target, content, archive.Zip, false); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]time.Time{"unix": day.Add(time.Second), "dos": day} {
		if info, err := os.Stat(filepath.Join(target, name)); err != nil || !info.ModTime().Equal(want) {
			t.Errorf("%s is of %v, not %v, %v", name, info.ModTime(), want, err)
		}
	}
}

// bytesAt returns a copy with some bytes replaced.
func bytesAt(b []byte, at int, with ...byte) []byte {
	b = bytes.Clone(b)
	copy(b[at:], with)

	return b
}

// TestExtractOfModesOfDos has entries without a mode.
func TestExtractOfModesOfDos(t *testing.T) {
	mask := syscall.Umask(0o027)
	defer syscall.Umask(mask)
	dos := func(attrs uint32) func(*pkzip.FileHeader) {
		return func(h *pkzip.FileHeader) { h.CreatorVersion, h.ExternalAttrs = 0, attrs }
	}
	content := packZip(t, member{name: "plain", change: dos(0x20)}, member{name: "fixed", change: dos(0x21)}, member{name: "dir/", change: dos(0x10)}, member{name: `below\dir`, change: dos(0x20)})
	for _, preserve := range []bool{false, true} {
		target := t.TempDir()
		if err := extractInto(t, target, content, archive.Zip, preserve); err != nil {
			t.Fatal(err)
		}
		tree := hosttest.Snapshot(t, target)
		for name, want := range map[string]fs.FileMode{"plain": 0o640, "fixed": 0o440, "dir": fs.ModeDir | 0o750, "below": fs.ModeDir | 0o750, "below/dir": 0o640} {
			if got := tree[name].Mode; got != want {
				t.Errorf("preserve %t: %s has mode %v", preserve, name, got)
			}
		}
	}
}

// TestExtractOfALyingZip has an index that promises less than there is.
func TestExtractOfALyingZip(t *testing.T) {
	content := packZip(t, member{name: "bomb", content: string(make([]byte, 4<<20))})
	at := bytes.LastIndex(content, []byte("PK\x01\x02"))
	content = bytesAt(content, at+24, binary.LittleEndian.AppendUint32(nil, 10)...)
	target := t.TempDir()
	if err := extractInto(t, target, content, archive.Zip, false); err == nil || len(hosttest.Snapshot(t, target)) != 1 {
		t.Errorf("the error is %v", err)
	}
}

// FuzzExtract unpacks every archive that Inspect accepts: no file may be outside the target or have a mode
// that the umask denies.
func FuzzExtract(f *testing.F) {
	for _, entries := range [][]tar.Header{
		{regular("manifest.yaml", "muster: {}", 0o644), directory("d/", 0o755), regular("d/f", "x", 0o6777)},
		{link("l", "d/f"), regular("d/f", "x", 0o644), {Typeflag: tar.TypeLink, Name: "h", Linkname: "d/f"}},
		{link("a/b/top", "../.."), link("l", "a/b/top/../out")},
		{regular("../up", "x", 0o644)},
		{regular("out/file", "x", 0o644)},
		{directory("d", 0o755), link("l", "d"), regular("l/file", "x", 0o644)},
		{{Typeflag: tar.TypeLink, Name: "h", Linkname: "../secret"}},
	} {
		f.Add(pack(f, entries...))
	}
	for _, members := range [][]member{
		{{name: "d/", mode: fs.ModeDir | 0o755}, {name: "d/f", content: "x", mode: 0o644}},
		{{name: "l", content: "d", mode: fs.ModeSymlink | 0o777}, {name: "x", content: "y"}},
		{{name: "out/x", content: "y"}},
		{{name: `..\up`, content: "y"}},
		{{name: "good", content: "y", change: withExtra("../up")}},
		{{name: "o\x98ut/x", content: "y", change: func(h *pkzip.FileHeader) { h.CreatorVersion = 63 }}},
		{{name: "d/", mode: fs.ModeDir | fs.ModeSticky | 0o777}, {name: "f", content: "x", mode: fs.ModeSetuid | 0o777}},
	} {
		f.Add(packZip(f, members...))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		target := filepath.Join(dir, "target")
		err := errors.Join(os.Mkdir(target, 0o755), os.WriteFile(filepath.Join(dir, "secret"), []byte("kept"), 0o600), os.Symlink("..", filepath.Join(target, "out")))
		if err != nil {
			t.Fatal(err)
		}
		before := hosttest.Snapshot(t, dir)
		for _, format := range []archive.Format{archive.Zip, archive.Tar} {
			// Whatever the answer is, nothing may leave the target.
			_ = newStand(t, filepath.Join(t.TempDir(), "archive"), content, format, target).extract(t, archive.Limits{Bytes: 1 << 16, Entries: 50}, false)
		}
		after := hosttest.Snapshot(t, dir)
		for name, item := range after {
			if item.Target == "" && item.Mode&(0o022|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 {
				t.Errorf("%s has mode %v", name, item.Mode)
			}
		}
		for _, line := range hosttest.SnapshotDiff(before, after) {
			if !strings.HasPrefix(line, "target") {
				t.Errorf("outside of the target: %s", line)
			}
		}
	})
}

// TestOpenOfWhatIsNoFile tries other kinds of files in place of an archive.
func TestOpenOfWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), nil, 0o600), os.Symlink("file", filepath.Join(dir, "link")), syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600), os.Mkdir(filepath.Join(dir, "dir"), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"none": fs.ErrNotExist, "link": files.ErrNotRegular, "fifo": files.ErrNotRegular, "dir": files.ErrNotRegular} {
		if _, err := archive.Open(t.Context(), files.New(files.Options{}), filepath.Join(dir, name), archive.Tar); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
