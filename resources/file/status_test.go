package file_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/file"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// helloDigest is the SHA-256 of "hello\n".
const helloDigest = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"

func testEnv(t *testing.T, dir string) resource.Env {
	t.Helper()

	return resource.Env{Host: hosttest.New(t), Log: hosttest.Log(t), Scope: resource.Scope{Dir: dir}}
}

func specOf(t *testing.T, p typetest.Properties) *file.Spec {
	t.Helper()
	r, problems := resource.Decode(fileType(), typetest.Value(p), model.Position{})
	check(t, problems.Err())

	return r.Spec.(*file.Spec)
}

func stateOf(t *testing.T, env resource.Env, spec *file.Spec) *file.State {
	t.Helper()
	state, err := file.Type{}.Status(t.Context(), env, file.Posix{}, spec)
	check(t, err)

	return state
}

// TestProviderStatus covers the table of what the look at a path comes to.
func TestProviderStatus(t *testing.T) {
	user, group := hosttest.Owner(t)
	h := hosttest.New(t)
	mode := func(m string) func(*file.Metadata) bool {
		return func(got *file.Metadata) bool { return got.Mode == m }
	}
	for name, c := range map[string]struct {
		setup  setup
		ensure string
		// checks are what must hold of the metadata; nil means that there is none.
		check func(*file.Metadata) bool
	}{
		"absent":    {setup: withDir("d", 0o755), ensure: "absent"},
		"empty":     {setup: withFile("x", "", 0o644), ensure: "present", check: mode("0644")},
		"file":      {setup: withFile("x", "hello\n", 0o640), ensure: "present", check: func(m *file.Metadata) bool { return m.Checksum == helloDigest && m.Size == 6 && m.Mode == "0640" }},
		"setuid":    {setup: withFile("x", "", 0o4755), ensure: "present", check: mode("4755")},
		"directory": {setup: withDir("x", 0o750), ensure: "directory", check: func(m *file.Metadata) bool { return m.Checksum == "" && m.Mode == "0750" }},
		"link to a directory": {setup: all(withDir("d", 0o700), withLink("x", "d")), ensure: "directory", check: func(m *file.Metadata) bool {
			return m.Mode == "0700" && m.Extended["link"] == true
		}},
		"link to a file": {setup: all(withFile("f", "hello\n", 0o644), withLink("x", "f")), ensure: "present", check: func(m *file.Metadata) bool {
			return m.Checksum == "" && m.Extended["link"] == true
		}},
		"dangling link": {setup: withLink("x", "nowhere"), ensure: "present", check: func(m *file.Metadata) bool { return m.Extended["link"] == true }},
		"fifo":          {setup: withFifo("x"), ensure: "present", check: func(m *file.Metadata) bool { return m.Extended["special"] == true }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.setup(t, dir)
			env := resource.Env{Host: h, Log: hosttest.Log(t)}
			got, err := fileType().Status(t.Context(), env, file.Posix{}, &file.Spec{Common: model.Common{Name: filepath.Join(dir, "x")}})
			check(t, err)
			state := got.(*file.State)
			if state.Ensure != c.ensure || state.Protocol != "io.choria.ccm.v1.resource.file.state" || state.ResourceType != "file" {
				t.Errorf("%+v", state.CommonState)
			}
			m := state.Metadata
			if (m == nil) != (c.check == nil) {
				t.Fatalf("metadata %+v", m)
			}
			if m == nil {
				return
			}
			if !c.check(m) || m.Provider != "posix" || m.Name != filepath.Join(dir, "x") || m.MTime.IsZero() {
				t.Errorf("metadata %+v", m)
			}
			uid, err := h.UID(t.Context(), m.Owner)
			check(t, err)
			gid, err := h.GID(t.Context(), m.Group)
			check(t, err)
			if want := hosttest.Attrs(t, 0); uid != want.UID || gid != want.GID {
				t.Errorf("owner %s:%s, not %s:%s", m.Owner, m.Group, user, group)
			}
		})
	}
}

// TestStatusReads checks when content is read: an observation with only a name has the checksum, and
// unmanaged content is not read.
func TestStatusReads(t *testing.T) {
	user, group := hosttest.Owner(t)
	dir := t.TempDir()
	withFile("x", "hello\n", 0o644)(t, dir)
	path := filepath.Join(dir, "x")
	env := testEnv(t, dir)
	for name, c := range map[string]struct {
		spec file.Spec
		read bool
	}{
		"a name alone": {spec: file.Spec{Common: model.Common{Name: path, Ensure: "present"}}, read: true},
		"attributes":   {spec: file.Spec{Common: model.Common{Name: path, Ensure: "present"}, Owner: user, Group: group, Mode: "0644"}},
		"source":       {spec: file.Spec{Common: model.Common{Name: path, Ensure: "present"}, Owner: user, Group: group, Mode: "0644", Source: "x"}, read: true},
		"absent":       {spec: file.Spec{Common: model.Common{Name: path, Ensure: "absent"}}},
		"directory":    {spec: file.Spec{Common: model.Common{Name: path, Ensure: "directory"}, Owner: user, Group: group, Mode: "0644"}},
	} {
		t.Run(name, func(t *testing.T) {
			state := stateOf(t, env, &c.spec)
			if read := state.Metadata.Checksum == helloDigest; read != c.read || (!read && state.Metadata.Checksum != "") {
				t.Errorf("checksum %q", state.Metadata.Checksum)
			}
		})
	}
}

// TestUnknown checks that what could not be looked at is neither written nor
// taken for removed.
func TestUnknown(t *testing.T) {
	user, group := hosttest.Owner(t)
	state := &file.State{CommonState: model.CommonState{Ensure: "absent"}, Unknown: &fs.PathError{Op: "lstat", Path: "/x", Err: fs.ErrPermission}}
	content := "x"
	for _, ensure := range []string{"present", "absent", "directory"} {
		spec := &file.Spec{Common: model.Common{Name: "/x", Ensure: ensure}, Owner: user, Group: group, Mode: "0644"}
		if ensure == "present" {
			spec.Content = &content
		}
		plan, err := file.Type{}.Plan(spec, state, false)
		if !errors.Is(err, fs.ErrPermission) || !plan.Empty() || !strings.Contains(err.Error(), "could not inspect /x") {
			t.Errorf("%s: %+v, %v", ensure, plan, err)
		}
	}
}

// TestStatusOtherError checks the row "other error": a name that is too long is
// one for every user.
func TestStatusOtherError(t *testing.T) {
	var log strings.Builder
	env := testEnv(t, t.TempDir())
	env.Log = slog.New(slog.NewTextHandler(&log, nil))
	state, err := file.Posix{}.Status(t.Context(), env, "/"+strings.Repeat("x", 5000), everything)
	check(t, err)
	if state.Ensure != "" || state.Metadata != nil || state.Unknown == nil || !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("%+v, log %q", state, &log)
	}
}

func TestMissing(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		setup      setup
		properties func(string) typetest.Properties
		need       string
		is         error
		says       string
	}{
		"user":   {properties: owned(t, "x", typetest.Properties{"owner": "no-such-user"}), need: "user:no-such-user path:/etc/passwd", is: host.ErrNoAccount, says: "could not lookup user"},
		"group":  {properties: owned(t, "x", typetest.Properties{"group": "no-such-group"}), need: "group:no-such-group path:/etc/group", is: host.ErrNoAccount, says: "could not lookup group"},
		"source": {properties: owned(t, "x", typetest.Properties{"source": "no/f"}), need: "path:" + dir + "/no/f", is: fs.ErrNotExist, says: "the source"},
		"parent": {properties: owned(t, "a/b/x", nil), need: "path:" + dir + "/a/b", is: files.ErrNoParent, says: dir + "/a/b is not a directory"},
		"full":   {setup: withFile("d/f", "", 0o644), properties: absent("d", nil), need: "emptied:" + dir + "/d", is: files.ErrNotEmpty, says: "force: true is required"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.setup != nil {
				c.setup(t, dir)
			}
			env, spec, typ := testEnv(t, dir), specOf(t, c.properties(dir)), file.Type{}
			state, err := typ.Status(t.Context(), env, file.Posix{}, spec)
			if err == nil {
				_, err = typ.Plan(spec, state, false)
			}
			needs := resource.Prerequisites(err)
			if strings.Join(needs, " ") != c.need || !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("needs %q of %v", needs, err)
			}
		})
	}
}

// TestNoAccountNeeded checks that a removal asks for no account.
func TestNoAccountNeeded(t *testing.T) {
	dir := t.TempDir()
	spec := specOf(t, absent("x", typetest.Properties{"owner": "no-such-user", "group": "no-such-group", "mode": "0644"})(dir))
	if state := stateOf(t, testEnv(t, dir), spec); state.Ensure != "absent" {
		t.Errorf("%+v", state)
	}
}

func TestSourceWithoutDirectory(t *testing.T) {
	env := testEnv(t, "")
	spec := specOf(t, owned(t, "x", typetest.Properties{"source": "files/f"})(t.TempDir()))
	_, err := file.Type{}.Status(t.Context(), env, file.Posix{}, spec)
	if err == nil || !strings.Contains(err.Error(), "push it as a bundle") {
		t.Errorf("%v", err)
	}
	if resource.Prerequisites(err) != nil {
		t.Error("nothing in the run can bring a directory of the manifest")
	}
}

// TestLargeDiff checks the message for a file that is too large for a diff.
func TestLargeDiff(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "x"), []byte(strings.Repeat("a\n", 600_000)), 0o644))
	spec := specOf(t, owned(t, "x", typetest.Properties{"content": "hello\n"})(dir))
	plan, err := file.Type{}.Plan(spec, stateOf(t, testEnv(t, dir), spec), false)
	check(t, err)
	diff := plan.Changes[0].Diff
	if !strings.HasPrefix(diff, "too large for a diff, 1.2 MB -> 6 B, sha256 ") || !strings.HasSuffix(diff, " -> "+helloDigest) {
		t.Errorf("diff %q", diff)
	}
}

// TestLargeSource checks that the size of a source costs no memory, in a look,
// a copy and the look that verifies it.
func TestLargeSource(t *testing.T) {
	const size = 64 << 20
	dir := t.TempDir()
	withFile("src", "", 0o644)(t, dir)
	check(t, os.Truncate(filepath.Join(dir, "src"), size))
	typ, env := file.Type{}, testEnv(t, dir)
	spec := specOf(t, owned(t, "x", typetest.Properties{"source": "src"})(dir))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	plan, err := typ.Plan(spec, stateOf(t, env, spec), false)
	check(t, err)
	outcome, err := typ.Apply(t.Context(), env, file.Posix{}, spec, plan)
	check(t, err)
	state := stateOf(t, env, spec)
	check(t, fileType().Verify(spec, outcome, state))
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > size/16 || state.Metadata.Size != size {
		t.Errorf("%d bytes were allocated for a source of %d, of which %d were copied", used, size, state.Metadata.Size)
	}
}

// everything has the content of any file read.
func everything(files.Entry) bool { return true }
