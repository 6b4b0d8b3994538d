//go:build system

package archive_test

import (
	"archive/tar"
	pkzip "archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/archive"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
	"github.com/musterfleet/muster/testing/webtest"
)

// foreign is a user and a group that own nothing here.
const foreign = 4242

// TestOwnersAreRestoredOnlyByPreserve runs as root, because only root can set other owners.
func TestOwnersAreRestoredOnlyByPreserve(t *testing.T) {
	e := regular("suid", "x", 0o4755)
	e.header.Uid, e.header.Gid = foreign, foreign
	for _, preserve := range []bool{false, true} {
		x, err := unpack(t, ".tar.gz", zipped(t, packTar(t, e)), func(x *trial) { x.spec.Preserve = preserve })
		check(t, err)
		got := hosttest.Snapshot(t, x.spec.ExtractParent)["suid"]
		if (got.UID == foreign && got.GID == foreign && got.Mode&fs.ModeSetuid != 0) != preserve || !preserve && (got.UID != 0 || got.GID != 0 || got.Mode&fs.ModeSetuid != 0) {
			t.Errorf("preserve %t: %+v", preserve, got)
		}
	}
}

// ownedZip is a zip with a file of mode 04755 that is foreign.
func ownedZip(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w := pkzip.NewWriter(&b)
	header := &pkzip.FileHeader{Name: "suid"}
	header.SetMode(0o755 | fs.ModeSetuid)
	// The third field of Info-ZIP: version, then user and group with their lengths.
	extra := binary.LittleEndian.AppendUint16(nil, 0x7875)
	extra = append(binary.LittleEndian.AppendUint16(extra, 11), 1, 4)
	extra = append(binary.LittleEndian.AppendUint32(extra, foreign), 4)
	header.Extra = binary.LittleEndian.AppendUint32(extra, foreign)
	f, err := w.CreateHeader(header)
	check(t, err)
	_, err = f.Write([]byte("x"))
	check(t, err)
	check(t, w.Close())

	return b.String()
}

func TestOwnersOfAZipAreRestoredOnlyByPreserve(t *testing.T) {
	for _, preserve := range []bool{false, true} {
		x, err := unpack(t, ".zip", ownedZip(t), func(x *trial) { x.spec.Preserve = preserve })
		check(t, err)
		got := hosttest.Snapshot(t, x.spec.ExtractParent)["suid"]
		if (got.UID == foreign) != preserve || (got.GID == foreign) != preserve || (got.Mode&fs.ModeSetuid != 0) != preserve {
			t.Errorf("preserve %t: %+v", preserve, got)
		}
	}
}

// TestModesAreThoseOfTheArchiveLessTheUmask has all formats go by one rule.
func TestModesAreThoseOfTheArchiveLessTheUmask(t *testing.T) {
	modes := map[string]fs.FileMode{
		"open": 0o666, "tool": 0o777, "group": 0o664, "own": 0o600, "suid": 0o755 | fs.ModeSetuid, "all/": fs.ModeDir | 0o777,
		"sticky/": fs.ModeDir | fs.ModeSticky | 0o777, "sgid/": fs.ModeDir | fs.ModeSetgid | 0o775, "private/": fs.ModeDir | 0o700, "fixed/": fs.ModeDir | 0o555, "kept/": fs.ModeDir | 0o700,
		"fixed/below": 0o444, "made/below": 0o666,
	}
	var entries []entry
	var files []file
	for _, name := range slices.Sorted(maps.Keys(modes)) {
		header := &pkzip.FileHeader{Name: name}
		header.SetMode(modes[name])
		packed, err := tar.FileInfoHeader(header.FileInfo(), "")
		check(t, err)
		packed.Name = name
		entries, files = append(entries, entry{header: *packed}), append(files, file{name: name, mode: modes[name]})
	}
	packed := packTar(t, entries...)
	for _, umask := range []int{0o022, 0o027, 0o077, 0} {
		for extension, content := range map[string]string{".tar": packed, ".tar.gz": zipped(t, packed), ".zip": packZip(t, files...)} {
			x, err := unpack(t, extension, content, func(x *trial) {
				check(t, os.Chmod(x.dir, 0o755))
				check(t, os.MkdirAll(filepath.Join(x.spec.ExtractParent, "kept"), 0o755))
				check(t, os.Chmod(filepath.Join(x.spec.ExtractParent, "kept"), 0o751))
				t.Cleanup(func(before int) func() { return func() { syscall.Umask(before) } }(syscall.Umask(umask)))
			})
			check(t, err)
			tree := hosttest.Snapshot(t, x.spec.ExtractParent)
			for name, mode := range modes {
				want := mode.Perm() &^ fs.FileMode(umask)
				if name == "kept/" {
					want = 0o751
				}
				if got := tree[strings.TrimSuffix(name, "/")].Mode &^ fs.ModeDir; got != want {
					t.Errorf("umask %03o, %s: %s has mode %v, not %v", umask, extension, name, got, want)
				}
			}
			if got, want := tree["made"].Mode.Perm(), 0o777&^fs.FileMode(umask); got != want {
				t.Errorf("umask %03o, %s: made has mode %v, not %v", umask, extension, got, want)
			}
		}
	}
}

// TestModesOfAZipFromAnySystem has the number of each system that a zip may be
// from, which says what the attributes of its entries mean.
func TestModesOfAZipFromAnySystem(t *testing.T) {
	good := packZip(t, file{name: "tool", content: "x", mode: 0o777})
	at := strings.Index(good, "PK\x01\x02") + 5
	for system := range 32 {
		x, err := unpack(t, ".zip", good[:at]+string([]byte{byte(system)})+good[at+1:], nil)
		check(t, err)
		got := hosttest.Snapshot(t, x.spec.ExtractParent)["tool"]
		if got.Mode.Perm()&0o022 != 0 || got.Mode.Perm()&0o400 == 0 || got.Digest != sum("x") {
			t.Errorf("system %d: it has mode %v", system, got.Mode)
		}
	}
}

// TestNamesOfAZipAreKept has names that unzip changes when a zip is from another
// system, which would lead them elsewhere: out is a link that leads out.
func TestNamesOfAZipAreKept(t *testing.T) {
	for _, preserve := range []bool{false, true} {
		for _, name := range []string{"café", "caf\xe9", "日本/語", "o\x98ut/x", ".\x98./up", "o\xc1t/x", "a;1/b"} {
			good := packZip(t, file{name: name, content: "x", mode: 0o644})
			at := strings.Index(good, "PK\x01\x02") + 5
			for _, system := range []byte{0, 3, 6, 11, 19} {
				x, err := unpack(t, ".zip", good[:at-1]+string([]byte{50, system})+good[at+1:], func(x *trial) {
					x.spec.Preserve = preserve
					check(t, os.Mkdir(x.spec.ExtractParent, 0o755))
					check(t, os.Symlink("..", filepath.Join(x.spec.ExtractParent, "out")))
					check(t, os.Symlink("..", filepath.Join(x.spec.ExtractParent, "o-t")))
				})
				check(t, err)
				tree := hosttest.Snapshot(t, x.dir)
				// The zip, the target with two links, the file and the directory above it.
				if got := tree["opt/"+name]; got.Digest != sum("x") || got.Mode != 0o644 || len(tree) != 6+strings.Count(name, "/") {
					t.Errorf("%q from system %d: %+v", name, system, tree)
				}
			}
		}
	}
}

// TestZipOverwrites has a zip overwrite, make links, and not write through them.
func TestZipOverwrites(t *testing.T) {
	packed := packZip(t,
		file{name: "app/", mode: fs.ModeDir | 0o755}, file{name: "app/tool", content: "new", mode: 0o755}, file{name: "app/ä", content: "utf-8", mode: 0o644},
		file{name: "app/current", content: "tool", mode: fs.ModeSymlink | 0o777}, file{name: "app/out", content: "mine", mode: 0o644})
	x, err := unpack(t, ".zip", packed, func(x *trial) {
		app := filepath.Join(x.spec.ExtractParent, "app")
		check(t, os.MkdirAll(app, 0o755))
		check(t, os.WriteFile(filepath.Join(app, "tool"), []byte("old"), 0o644))
		check(t, os.WriteFile(filepath.Join(x.dir, "secret"), []byte("kept"), 0o600))
		check(t, os.Symlink("../../secret", filepath.Join(app, "out")))
	})
	check(t, err)
	tree := hosttest.Snapshot(t, x.dir)
	if tree["opt/app/tool"].Digest != sum("new") || tree["opt/app/tool"].Mode.Perm() != 0o755 || tree["opt/app/ä"].Digest != sum("utf-8") || tree["opt/app/current"].Target != "tool" ||
		tree["opt/app/out"].Digest != sum("mine") || tree["secret"].Digest != sum("kept") {
		t.Errorf("%+v", tree)
	}
}

// TestNothingIsWrittenThroughLinks has a link where a file should be.
func TestNothingIsWrittenThroughLinks(t *testing.T) {
	x, err := unpack(t, ".tar", packTar(t, regular("out", "mine", 0o644)), func(x *trial) {
		check(t, os.Mkdir(x.spec.ExtractParent, 0o755))
		check(t, os.WriteFile(filepath.Join(x.dir, "secret"), []byte("kept"), 0o600))
		check(t, os.Symlink("../secret", filepath.Join(x.spec.ExtractParent, "out")))
	})
	check(t, err)
	if tree := hosttest.Snapshot(t, x.dir); tree["opt/out"].Digest != sum("mine") || tree["secret"].Digest != sum("kept") {
		t.Errorf("%+v", tree)
	}
}

// TestDeviceMadeByTar has what tar itself makes of a device.
func TestDeviceMadeByTar(t *testing.T) {
	dir := t.TempDir()
	h := hosttest.New(t)
	for _, argv := range [][]string{{"mknod", "null", "c", "1", "3"}, {"tar", "-czf", "a.tar.gz", "null"}} {
		if result, err := h.Run(t.Context(), command.Command{Argv: argv, Dir: dir}); err != nil || result.ExitCode != 0 {
			t.Fatal(argv, err, result.Stderr)
		}
	}
	content, err := os.ReadFile(filepath.Join(dir, "a.tar.gz"))
	check(t, err)
	if x, err := unpack(t, ".tar.gz", string(content), nil); err == nil || len(hosttest.Snapshot(t, x.dir)) != 2 {
		t.Errorf("it was unpacked: %v", err)
	}
}

// TestTargetOfAStranger has a user lead the target to a directory of root, also
// while the archive is unpacked.
func TestTargetOfAStranger(t *testing.T) {
	hosttest.NeedRoot(t)
	var entries []entry
	for i := range 300 {
		entries = append(entries, regular(fmt.Sprintf("f%03d", i), "x", 0o644))
	}
	packed := packTar(t, entries...)
	for _, swapped := range []bool{false, true} {
		for _, below := range []string{"", "sub"} {
			outside := t.TempDir()
			check(t, os.Chmod(outside, 0o755))
			x, err := unpack(t, ".tar", packed, func(x *trial) {
				home := hosttest.Foreign(t)
				app, link := filepath.Join(home, "app"), filepath.Join(home, "link")
				check(t, errors.Join(os.Symlink(outside, link), os.Mkdir(app, 0o755)))
				hosttest.Give(t, link, app)
				x.spec.ExtractParent = filepath.Join(link, below)
				if swapped {
					x.spec.ExtractParent = filepath.Join(app, below)
					hosttest.Swap(t, app, link)
				}
			})
			if !swapped && !errors.Is(err, paths.ErrUnsafe) {
				t.Errorf("%s: %v", x.spec.ExtractParent, err)
			}
			if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
				t.Errorf("%s, swapped %t: %d files of root were written: %v", x.spec.ExtractParent, swapped, len(left), err)
			}
		}
	}
}

// TestContractAsRoot has the rows of the decision table that need another
// owner, and a whole life of a zip.
func TestContractAsRoot(t *testing.T) {
	server := webtest.Start(t)
	server.Put("/a.tar", webtest.Text(packTar(t, regular("x", "x", 0o644), entry{header: tar.Header{Typeflag: tar.TypeDir, Name: "d", Mode: 0o755}})))
	server.Put("/a.zip", webtest.Text(packZip(t, file{name: "app/tool", content: "x", mode: 0o755})))
	of := func(extension string, more typetest.Properties) func(string) typetest.Properties {
		return func(dir string) typetest.Properties {
			p := typetest.Properties{"name": dir + "/a" + extension, "url": server.URL + "/a" + extension, "owner": "4242", "group": "4242"}
			for key, value := range more {
				if text, ok := value.(string); ok && (key == "extract_parent" || key == "creates") {
					value = dir + text
				}
				p[key] = value
			}
			return p
		}
	}
	stale := func(uid, gid int) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, "a.tar")
			check(t, os.WriteFile(path, []byte("old"), 0o640))
			check(t, os.Chown(path, uid, gid))
		}
	}
	owned := func(t *testing.T, dir string) {
		for name, item := range hosttest.Snapshot(t, dir) {
			if name == "a.tar" && (item.UID != foreign || item.GID != foreign || item.Digest == sum("old")) {
				t.Errorf("%+v", item)
			}
		}
	}
	const downloaded = "Would have downloaded"
	zip := typetest.Properties{"extract_parent": "/opt", "creates": "/opt/app/tool", "cleanup": true}
	typetest.Run(t, typetest.Config{Type: archive.New(archive.NewHTTP(archive.HTTPOptions{})), Facts: model.Facts{}, ReadOnly: typetest.Only("getent "), Cases: []typetest.Case{
		{Name: "owner differs", Setup: stale(0, foreign), Properties: of(".tar", nil), Message: downloaded, Check: owned},
		{Name: "group differs", Setup: stale(foreign, 0), Properties: of(".tar", nil), Message: downloaded, Check: owned},
		{Name: "neither differs", Setup: stale(foreign, foreign), Properties: of(".tar", nil)},
		{Name: "a zip", Properties: of(".zip", zip), Message: downloaded + ". Would have extracted. Would have cleaned up", Check: func(t *testing.T, dir string) {
			if tree := hosttest.Snapshot(t, dir); tree["opt/app/tool"].Digest != sum("x") || tree["opt/app/tool"].UID != 0 || len(tree) != 4 {
				t.Errorf("%+v", tree)
			}
		}},
	}})
}
