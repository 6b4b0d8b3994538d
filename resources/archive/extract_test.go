package archive_test

import (
	"archive/tar"
	pkzip "archive/zip"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/archive"
	hostarchive "github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/webtest"
)

// file is one of a zip.
type file struct {
	name, content string
	mode          fs.FileMode
}

func packZip(t testing.TB, files ...file) string {
	t.Helper()
	var b bytes.Buffer
	w := pkzip.NewWriter(&b)
	for _, f := range files {
		header := &pkzip.FileHeader{Name: f.name, Method: pkzip.Deflate}
		header.SetMode(f.mode)
		out, err := w.CreateHeader(header)
		check(t, err)
		_, err = io.WriteString(out, f.content)
		check(t, err)
	}
	check(t, w.Close())

	return b.String()
}

// unpack extracts content of an extension into DIR/opt.
func unpack(t testing.TB, extension, text string, set func(x *trial)) (*trial, error) {
	t.Helper()
	x := newTrial(t, webtest.Start(t))
	x.spec.Name = filepath.Join(x.dir, "a"+extension)
	x.spec.ExtractParent = filepath.Join(x.dir, "opt")
	check(t, os.WriteFile(x.spec.Name, []byte(text), 0o640))
	if set != nil {
		set(x)
	}

	format, err := x.spec.ArchiveFormat()
	check(t, err)
	content, err := hostarchive.Open(t.Context(), x.env.Host.Disk, x.spec.Name, format)
	check(t, err)
	defer content.Close()

	return x, x.provider.Extract(t.Context(), x.env, x.spec, content)
}

func TestExtract(t *testing.T) {
	packed := packTar(t, regular("app/tool", "x", 0o755), regular("app/sub/conf", "y", 0o600), entry{header: tar.Header{Typeflag: tar.TypeSymlink, Name: "app/current", Linkname: "tool"}})
	for extension, content := range map[string]string{".tar": packed, ".tar.gz": zipped(t, packed), ".tgz": zipped(t, packed)} {
		x, err := unpack(t, extension, content, nil)
		check(t, err)
		tree := hosttest.Snapshot(t, x.spec.ExtractParent)
		if tree["."].Mode.Perm() != 0o755 || tree["app/tool"].Mode.Perm()&0o700 != 0o700 || tree["app/tool"].Digest != sum("x") || tree["app/sub/conf"].Digest != sum("y") || tree["app/current"].Target != "tool" {
			t.Errorf("%s: %+v", extension, tree)
		}
	}
}

// TestExtractOfNothing has archives without entries.
func TestExtractOfNothing(t *testing.T) {
	for extension, content := range map[string]string{".tar": packTar(t), ".tar.gz": zipped(t, packTar(t)), ".zip": packZip(t)} {
		x, err := unpack(t, extension, content, nil)
		if err != nil {
			t.Errorf("%s: %v", extension, err)
		}
		if tree := hosttest.Snapshot(t, x.spec.ExtractParent); len(tree) != 1 || tree["."].Mode.Perm() != 0o755 {
			t.Errorf("%s: %+v", extension, tree)
		}
	}
}

// TestExtractLeavesTheTargetAsItIs extracts an archive with attributes for the target directory
// itself.
func TestExtractLeavesTheTargetAsItIs(t *testing.T) {
	packed := packTar(t, entry{header: tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o700}}, entry{header: tar.Header{Typeflag: tar.TypeDir, Name: "./sub/", Mode: 0o700}}, regular("./sub/x", "x", 0o644))
	x, err := unpack(t, ".tar", packed, func(x *trial) {
		check(t, os.MkdirAll(filepath.Join(x.spec.ExtractParent, "sub"), 0o755))
		check(t, os.Chmod(filepath.Join(x.spec.ExtractParent, "sub"), 0o750))
		check(t, os.Chmod(x.spec.ExtractParent, 0o751))
	})
	check(t, err)
	tree := hosttest.Snapshot(t, x.spec.ExtractParent)
	if tree["."].Mode.Perm() != 0o751 || tree["sub"].Mode.Perm() != 0o750 || tree["sub/x"].Digest != sum("x") {
		t.Errorf("%+v", tree)
	}
}

// TestSpecialBits has them restored only by preserve.
func TestSpecialBits(t *testing.T) {
	entries := []entry{regular("suid", "x", 0o4755), regular("sgid", "x", 0o2755), {header: tar.Header{Typeflag: tar.TypeDir, Name: "sticky", Mode: 0o1777}}}
	for i := range entries {
		entries[i].header.Uid, entries[i].header.Gid = os.Geteuid(), os.Getegid()
	}
	packed := packTar(t, entries...)
	for extension, content := range map[string]string{".tar": packed, ".tar.gz": zipped(t, packed)} {
		for _, preserve := range []bool{false, true} {
			x, err := unpack(t, extension, content, func(x *trial) { x.spec.Preserve = preserve })
			check(t, err)
			tree := hosttest.Snapshot(t, x.spec.ExtractParent)
			for name, bit := range map[string]fs.FileMode{"suid": fs.ModeSetuid, "sgid": fs.ModeSetgid, "sticky": fs.ModeSticky} {
				if got := tree[name].Mode&bit != 0; got != preserve {
					t.Errorf("%s, preserve %t: %s has mode %v", extension, preserve, name, tree[name].Mode)
				}
			}
		}
	}
}

// TestIsManageable is "Provider Selection".
func TestIsManageable(t *testing.T) {
	spec := func(url, name string, extract bool) *archive.Spec {
		s := &archive.Spec{URL: url}
		s.Name = name
		if extract {
			s.ExtractParent = "/opt"
		}
		return s
	}
	p := archive.NewHTTP(archive.HTTPOptions{})
	for name, c := range map[string]struct {
		spec *archive.Spec
		want string
	}{
		"http":                  {spec("http://x/a.tar", "/a.tar", true), ""},
		"https":                 {spec("https://x/a.tar.gz", "/a.tar.gz", true), ""},
		"tgz":                   {spec("https://x/a.tgz", "/a.tgz", true), ""},
		"zip":                   {spec("https://x/a.zip", "/a.zip", true), ""},
		"another scheme":        {spec("ftp://x/a.zip", "/a.zip", false), "must be http or https"},
		"an unreadable url":     {spec("http://x/%zz", "/a.zip", false), "must be http or https"},
		"an unknown extension":  {spec("https://x/a.rar", "/a.rar", false), "archive type not supported"},
		"a question has no url": {spec("", "/a.zip", false), ""},
	} {
		ok, priority, err := p.IsManageable(nil, c.spec)
		if ok != (c.want == "") || ok && priority != 1 || !ok && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %t, %d, %v", name, ok, priority, err)
		}
	}
	if ok, _, err := p.IsManageable(nil, nil); ok || err == nil {
		t.Error("it manages what is no archive")
	}
	if p.Name() != "http" {
		t.Errorf("its name is %s", p.Name())
	}
}

// TestStatus is "Metadata Collected".
func TestStatus(t *testing.T) {
	x := newTrial(t, webtest.Start(t))
	x.spec.Creates = filepath.Join(x.dir, "made")
	state, err := x.provider.Status(t.Context(), x.env, x.spec)
	check(t, err)
	if want := (archive.Metadata{Name: x.spec.Name, Provider: "http"}); *state.Metadata != want || state.Ensure != "absent" {
		t.Errorf("nothing there: %+v %+v", state.CommonState, state.Metadata)
	}
	check(t, os.WriteFile(x.spec.Name, []byte("text"), 0o600))
	check(t, os.WriteFile(x.spec.Creates, nil, 0o600))
	when := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	check(t, os.Chtimes(x.spec.Name, when, when))
	state, err = x.provider.Status(t.Context(), x.env, x.spec)
	check(t, err)
	want := archive.Metadata{
		Name: x.spec.Name, Provider: "http", Checksum: sum("text"), ArchiveExists: true, CreatesExists: true, MTime: when, Size: 4,
		Owner: x.env.Host.UserName(t.Context(), uint32(os.Geteuid())), Group: x.env.Host.GroupName(t.Context(), uint32(os.Getegid())),
	}
	if *state.Metadata != want || state.Ensure != "present" {
		t.Errorf("%+v %+v, not %+v", state.CommonState, state.Metadata, want)
	}
	x.spec.Ensure = model.EnsureAbsent
	if state, err = x.provider.Status(t.Context(), x.env, x.spec); err != nil || state.Metadata.Checksum != "" {
		t.Errorf("what should be absent was read: %+v, %v", state.Metadata, err)
	}
}
