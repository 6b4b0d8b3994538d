package archive_test

import (
	"archive/tar"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	hostarchive "github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/hosttest"
)

// refuses fails unless an archive is refused for a reason, without anything
// being written. In the target stands out, a link that leads out of it.
func refuses(t *testing.T, extension, content string, is error) {
	t.Helper()
	var before hosttest.Tree
	x, err := unpack(t, extension, content, func(x *trial) {
		x.spec.MaxSize = 1 << 20
		check(t, os.WriteFile(filepath.Join(x.dir, "secret"), []byte("kept"), 0o600))
		check(t, os.Mkdir(x.spec.ExtractParent, 0o755))
		check(t, os.Symlink(x.dir, filepath.Join(x.spec.ExtractParent, "out")))
		before = hosttest.Snapshot(t, x.dir)
	})
	if !errors.Is(err, is) || !strings.HasPrefix(err.Error(), x.spec.Name+" is not unpacked: ") {
		t.Errorf("%s: the error is %v, want %v", extension, err, is)
	}
	if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, x.dir)); len(diff) > 0 {
		t.Errorf("%s: something was written: %v", extension, diff)
	}
}

// TestHostileArchives has what must be refused, as the second entry of an
// archive of each format.
func TestHostileArchives(t *testing.T) {
	const link = fs.ModeSymlink | 0o777
	for name, c := range map[string]struct {
		files []file
		is    error
	}{
		"..":                          {[]file{{name: "../up", content: "x"}}, hostarchive.ErrUnsafeEntry},
		".. in the middle":            {[]file{{name: "a/../../up", content: "x"}}, hostarchive.ErrUnsafeEntry},
		"a directory ..":              {[]file{{name: "../up/", mode: fs.ModeDir | 0o755}}, hostarchive.ErrUnsafeEntry},
		"an absolute name":            {[]file{{name: "/tmp/abs", content: "x"}}, hostarchive.ErrUnsafeEntry},
		"a link out":                  {[]file{{name: "l", content: "../..", mode: link}}, hostarchive.ErrUnsafeEntry},
		"a link to a secret":          {[]file{{name: "l", content: "../secret", mode: link}}, hostarchive.ErrUnsafeEntry},
		"an absolute link":            {[]file{{name: "l", content: "/etc", mode: link}}, hostarchive.ErrUnsafeEntry},
		"a write through a link":      {[]file{{name: "l", content: "d", mode: link}, {name: "l/x", content: "x"}}, hostarchive.ErrUnsafeEntry},
		"a write over a link":         {[]file{{name: "l", content: "d", mode: link}, {name: "l", content: "x"}}, hostarchive.ErrUnsafeEntry},
		"a directory over a link":     {[]file{{name: "l", content: "d", mode: link}, {name: "l/", mode: fs.ModeDir | 0o755}}, hostarchive.ErrUnsafeEntry},
		"a write through a disk link": {[]file{{name: "out/x", content: "x"}}, hostarchive.ErrUnsafeEntry},
		"a directory through one":     {[]file{{name: "out/x/", mode: fs.ModeDir | 0o755}}, hostarchive.ErrUnsafeEntry},
		"a link through one":          {[]file{{name: "out/x", content: "y", mode: link}}, hostarchive.ErrUnsafeEntry},
		"a character device":          {[]file{{name: "null", mode: fs.ModeDevice | fs.ModeCharDevice | 0o666}}, hostarchive.ErrEntryType},
		"a block device":              {[]file{{name: "sda", mode: fs.ModeDevice | 0o666}}, hostarchive.ErrEntryType},
		"a fifo":                      {[]file{{name: "fifo", mode: fs.ModeNamedPipe | 0o666}}, hostarchive.ErrEntryType},
		"a bomb":                      {[]file{{name: "bomb", content: string(make([]byte, 2<<20))}}, files.ErrTooLarge},
		"a bomb in parts":             {[]file{{name: "a", content: string(make([]byte, 1<<19))}, {name: "b", content: string(make([]byte, 1<<19))}}, files.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			files := append([]file{{name: "first", content: "x", mode: 0o644}}, c.files...)
			packed := packTar(t, asTar(files)...)
			refuses(t, ".tar", packed, c.is)
			refuses(t, ".tar.gz", zipped(t, packed), c.is)
			refuses(t, ".zip", packZip(t, files...), c.is)
		})
	}
	hard := entry{header: tar.Header{Typeflag: tar.TypeLink, Name: "h", Linkname: "../secret"}}
	refuses(t, ".tar", packTar(t, hard), hostarchive.ErrUnsafeEntry)
	refuses(t, ".tar.gz", zipped(t, packTar(t, hard)), hostarchive.ErrUnsafeEntry)
}

// asTar returns the entries of a zip as tar entries.
func asTar(files []file) []entry {
	var out []entry
	for _, f := range files {
		e := regular(f.name, f.content, int64(f.mode.Perm()))
		kinds := map[fs.FileMode]byte{
			fs.ModeDir: tar.TypeDir, fs.ModeSymlink: tar.TypeSymlink, fs.ModeNamedPipe: tar.TypeFifo,
			fs.ModeDevice: tar.TypeBlock, fs.ModeDevice | fs.ModeCharDevice: tar.TypeChar,
		}
		if kind, special := kinds[f.mode.Type()]; special {
			e.header.Typeflag, e.header.Size, e.content = kind, 0, ""
		}
		if f.mode.Type() == fs.ModeSymlink {
			e.header.Linkname = f.content
		}
		out = append(out, e)
	}

	return out
}

// TestArchivesThatAreNone uses invalid files of every format.
func TestArchivesThatAreNone(t *testing.T) {
	files := []file{{name: "first", content: strings.Repeat("some content\n", 1000)}, {name: "second", content: "x"}}
	plain, zip := packTar(t, asTar(files)...), packZip(t, files...)
	good := map[string]string{".tar": plain, ".tar.gz": zipped(t, plain), ".zip": zip, ".tar.xz": xzipped(t, plain), ".tar.zst": zstandard(t, plain)}
	for name, content := range map[string]string{
		"nothing":    "",
		"a page":     "<!DOCTYPE html><title>Sign in</title>",
		"blanks":     strings.Repeat(" ", 4096),
		"a bzip2":    "BZh91AY&SY" + plain,
		"an xz":      "\xfd7zXZ\x00\x00\x04" + plain,
		"a zstd":     "\x28\xb5\x2f\xfd" + plain,
		"a 7z":       "7z\xbc\xaf\x27\x1c" + zip,
		"a program":  "#!/bin/sh\n" + zip,
		"a deb":      "!<arch>\ndebian-binary   " + good[".tar.gz"],
		"two halves": plain[:512] + good[".tar.gz"],
	} {
		t.Run(name, func(t *testing.T) {
			for extension := range good {
				refuses(t, extension, content, hostarchive.ErrNotArchive)
			}
			refuses(t, "", content, hostarchive.ErrNotArchive)
			refuses(t, ".tar.bz2", content, hostarchive.ErrNotArchive)
		})
	}
	for extension := range good {
		for of, content := range good {
			if of != extension {
				refuses(t, extension, content, hostarchive.ErrNotArchive)
				continue
			}
			for _, at := range []int{1, 20, len(content) / 2, len(content) - 1024, len(content) - 9} {
				if at = max(at, 1); extension == ".tar" && at > len(content)-1024 {
					// Only a part of the end mark is missing, and tar needs just one half of the mark.
					continue
				}
				refuses(t, extension, content[:at], hostarchive.ErrNotArchive)
			}
		}
	}
}
