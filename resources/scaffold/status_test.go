package scaffold_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/scaffold"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// subject is one scaffold on one machine.
type subject struct {
	t    *testing.T
	dir  string
	env  resource.Env
	typ  *resource.Type
	spec *scaffold.Spec
}

func newSubject(t *testing.T, setup setup, more ...any) *subject {
	t.Helper()
	s := &subject{t: t, dir: t.TempDir(), typ: scaffoldType()}
	s.env = resource.Env{Host: hosttest.New(t), Log: hosttest.Log(t), Facts: model.Facts{"os": "debian"}, Scope: resource.Scope{Dir: s.dir}}
	setup(t, s.dir)
	s.now(more...)

	return s
}

// now gives the scaffold other properties.
func (s *subject) now(more ...any) {
	s.t.Helper()
	r, problems := resource.Decode(s.typ, typetest.Value(of(more...)(s.dir)), model.Position{})
	check(s.t, problems.Err())
	s.spec = r.Spec.(*scaffold.Spec)
}

func (s *subject) status() *scaffold.State {
	s.t.Helper()
	state, err := s.typ.Status(s.t.Context(), s.env, scaffold.Choria{}, s.spec)
	check(s.t, err)

	return state.(*scaffold.State)
}

func (s *subject) plan() resource.Plan {
	s.t.Helper()
	plan, err := s.typ.Plan(s.spec, s.status(), false)
	check(s.t, err)

	return plan
}

func (s *subject) apply() error {
	s.t.Helper()
	plan := s.plan()
	outcome, err := s.typ.Apply(s.t.Context(), s.env, scaffold.Choria{}, s.spec, plan)
	if err != nil {
		return err
	}

	return s.typ.Verify(s.spec, outcome, s.status())
}

// says fails unless the plan has these words.
func (s *subject) says(when, message string) {
	s.t.Helper()
	if got := s.plan().Message(); got != message {
		s.t.Errorf("%s the plan says %q, not %q", when, got, message)
	}
}

// TestState has the rows of "State Detection" and of "Result Categorization".
func TestState(t *testing.T) {
	made := all(two(), renderedBelow("out"), put("out/app.conf", "old\n", "out/extra", "x"))
	for name, tc := range map[string]struct {
		setup setup
		more  []any
		want  string
	}{
		"exists, present":       {made, nil, `{"ensure":"present","target_exists":true,"changed":["app.conf"],"purged":["extra"],"stable":["bin/run"]}`},
		"exists, absent":        {made, []any{"ensure", "absent"}, `{"ensure":"present","target_exists":true,"changed":["app.conf"],"purged":["extra"],"stable":["bin/run"]}`},
		"exists, absent, empty": {all(two(), directory("out")), []any{"ensure", "absent"}, `{"ensure":"present","target_exists":true}`},
		"missing, present":      {two(), nil, `{"ensure":"absent","target_exists":false}`},
		"missing, absent":       {two(), []any{"ensure", "absent"}, `{"ensure":"absent","target_exists":false}`},
		"missing, no source":    {func(*testing.T, string) {}, []any{"ensure", "absent"}, `{"ensure":"absent","target_exists":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSubject(t, tc.setup, tc.more...)
			state := s.status()
			short := func(paths []string) (out []string) {
				for _, path := range paths {
					out = append(out, strings.TrimPrefix(path, s.dir+"/out/"))
				}
				return out
			}
			m := state.Metadata
			got, err := json.Marshal(struct {
				Ensure  string   `json:"ensure"`
				Exists  bool     `json:"target_exists"`
				Changed []string `json:"changed,omitempty"`
				Purged  []string `json:"purged,omitempty"`
				Stable  []string `json:"stable,omitempty"`
			}{state.Ensure, m.TargetExists, short(m.Changed), short(m.Purged), short(m.Stable)})
			check(t, err)
			if string(got) != tc.want || m.Name != s.dir+"/out" || m.Provider != "choria" || m.Engine != "jet" {
				t.Errorf("got  %s\nwant %s\n%+v", got, tc.want, m)
			}
		})
	}
}

// A question without a source has an answer.
func TestQuestion(t *testing.T) {
	dir := t.TempDir()
	r, problems := resource.DecodeQuestion(scaffoldType(), typetest.Value(typetest.Properties{"name": dir}), model.Position{})
	check(t, problems.Err())
	env := resource.Env{Host: hosttest.New(t), Log: hosttest.Log(t)}
	state, err := r.Type.Status(t.Context(), env, scaffold.Choria{}, r.Spec)
	check(t, err)
	if !state.(*scaffold.State).Metadata.TargetExists {
		t.Error("the target is there")
	}
}

// A source that is missing may be brought by another resource of the run.
func TestMissingSource(t *testing.T) {
	s := newSubject(t, func(*testing.T, string) {})
	_, err := s.typ.Status(t.Context(), s.env, scaffold.Choria{}, s.spec)
	if needs := resource.Prerequisites(err); len(needs) != 1 || needs[0] != "path:"+s.dir+"/src" || !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	s.env.Scope.Dir = ""
	if _, err := s.typ.Status(t.Context(), s.env, scaffold.Choria{}, s.spec); err == nil || !strings.Contains(err.Error(), "push it as a bundle") {
		t.Error(err)
	}
}

// TestDiffs has what the plan shows of each file.
func TestDiffs(t *testing.T) {
	s := newSubject(t, all(two(), put("out/app.conf 0600", "name = old\n", "out/extra", "x")), "purge", true)
	changes := map[string]model.Change{}
	for _, c := range s.plan().Changes {
		changes[strings.TrimPrefix(c.Property, s.dir+"/out/")+" "+c.Action+" "+strings.SplitN(c.From, " ", 2)[0]] = c
	}
	if len(changes) != 4 {
		t.Fatalf("%d changes: %v", len(changes), changes)
	}
	for key, want := range map[string]string{
		"app.conf scaffold sha256": "-name = old\n+name = app\n",
		"bin/run scaffold absent":  "--- /dev/null\n+++ " + s.dir + "/out/bin/run\n@@ -0,0 +1,2 @@\n+#!/bin/sh\n+# debian\n",
		"app.conf scaffold mode":   "",
		"extra purge present":      "",
	} {
		c, ok := changes[key]
		if !ok || !strings.Contains(c.Diff, want) || want == "" && c.Diff != "" {
			t.Errorf("%s: %+v", key, c)
		}
	}
	if c := changes["app.conf scaffold mode"]; !strings.HasPrefix(c.From, "mode 0600, ") || !strings.HasPrefix(c.To, "mode 0644, ") {
		t.Errorf("%+v", c)
	}
	s.now("purge", true, "sensitive", true)
	for _, c := range s.plan().Changes {
		if c.Diff != "" {
			t.Error("a sensitive scaffold shows", c.Diff)
		}
	}
}

// Diffs and changes have to travel in one report.
func TestPlansAreBounded(t *testing.T) {
	many := func(n int, text string) *subject {
		return newSubject(t, func(t *testing.T, dir string) {
			for i := range n {
				put(fmt.Sprintf("src/f%03d", i), text)(t, dir)
			}
		})
	}
	s := many(505, "[[ Data.name ]]")
	plan := s.plan()
	if len(plan.Changes) != 501 || plan.Message() != changed(505) || plan.Changes[500].Property != "… 5 more" {
		t.Errorf("%d changes, %q, %+v", len(plan.Changes), plan.Message(), plan.Changes[500])
	}
	check(t, s.apply())
	s.says("afterwards", "")

	bytes, shown := 0, 0
	for _, c := range many(50, strings.Repeat(strings.Repeat("x", 60)+"\n", 150)).plan().Changes {
		if bytes += len(c.Diff); c.Diff != "" {
			shown++
		}
	}
	if bytes > 160<<10 || shown < 10 || shown == 50 {
		t.Errorf("%d diffs of %d bytes", shown, bytes)
	}
}

// Post runs again after a change of the file or of the commands, and if it is pending.
func TestPostIsRemembered(t *testing.T) {
	more := func(command string) []any {
		return []any{"post", post("f", `sh -c "`+command+` >> {}"`)}
	}
	s := newSubject(t, put("src/f", "1\n", "src/g", "2\n"), more("echo a")...)
	check(t, s.apply())
	s.says("after post", "")
	put("out/f", "1\na\nb\n")(t, s.dir)
	s.says("after an edit", changed(1))
	check(t, s.apply())
	s.says("after the repair", "")
	check(t, os.Chmod(filepath.Join(s.dir, "out/f"), 0o600))
	s.says("after another mode", changed(1))
	check(t, s.apply())
	s.now(more("echo c")...)
	s.says("with another command", changed(1))
	check(t, s.apply())
	has("out", "f", "1\nc\n", "g", "2\n")(t, s.dir)
	put("src/f", "3\n")(t, s.dir)
	s.says("with another template", changed(1))
	check(t, s.apply())
	has("out", "f", "3\nc\n", "g", "2\n")(t, s.dir)

	// As if a kill had come between writing and post.
	s.env.Host = hosttest.New(t)
	put("out/f", "3\n")(t, s.dir)
	s.says("without a record", changed(1))
	if c := s.plan().Changes[0]; c.From != "post not run" || c.To != "post run" {
		t.Errorf("%+v", c)
	}
	check(t, s.apply())
	has("out", "f", "3\nc\n", "g", "2\n")(t, s.dir)
}

// TestPostFails has the errors of post commands.
func TestPostFails(t *testing.T) {
	for name, tc := range map[string]struct{ command, want string }{
		"exit code":   {`sh -c "echo no such thing >&2; exit 3"`, "out/f: sh ended with exit code 3: no such thing"},
		"on stdout":   {`sh -c "echo said here; exit 3"`, "out/f: sh ended with exit code 3: said here"},
		"silent":      {"false", "out/f: false ended with exit code 1"},
		"no program":  {"/no/such/program", "out/f: command not found"},
		"leaves none": {"rm", "a post command left no file at"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSubject(t, put("src/f", "1", "src/g", "2"), "post", post("f", tc.command))
			err := s.apply()
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
			if s.plan().Empty() {
				t.Error("the next run does not try again")
			}
		})
	}
	s := newSubject(t, put("src/f", "1"), "post", post("f", "true"))
	s.env.Host = host.New(host.Options{})
	if err := s.apply(); !errors.Is(err, state.ErrNone) {
		t.Error("without a memory:", err)
	}
}

// TestRemoveErrors has the rows of "Error Handling".
func TestRemoveErrors(t *testing.T) {
	s := newSubject(t, all(put("src/a", "1", "src/b", "2", "out/a", "1", "out/b", "2")), "ensure", "absent")
	state := s.status()
	state.Metadata.Changed = []string{"relative"}
	p := scaffold.Choria{}
	if err := p.Remove(t.Context(), s.env, s.spec, state); err == nil || !strings.Contains(err.Error(), `is not absolute: "relative"`) {
		t.Error("a relative path:", err)
	}
	has("out", "a", "1", "b", "2")(t, s.dir)

	// A file that became a directory cannot be removed; the others are.
	check(t, os.Remove(filepath.Join(s.dir, "out/a")))
	directory("out/a/x")(t, s.dir)
	state.Metadata.Changed = nil
	if err := p.Remove(t.Context(), s.env, s.spec, state); !errors.Is(err, files.ErrNotEmpty) {
		t.Error("a file that cannot be removed:", err)
	}
	has("out", "a/", "", "a/x/", "")(t, s.dir)

	// A missing file is no error, and neither is a target that is not empty.
	check(t, p.Remove(t.Context(), s.env, s.spec, &scaffold.State{Metadata: &scaffold.Metadata{Stable: []string{s.dir + "/out/b"}}}))
	has("out", "a/", "", "a/x/", "")(t, s.dir)
}

// Templates that give something else every time are reported as such.
func TestVerify(t *testing.T) {
	s := newSubject(t, put("src/f", `{{ uuidv4 }}`, "src/g", "x"), "engine", "go")
	want := "still different: " + s.dir + "/out/f (templates must give the same every time)"
	if err := s.apply(); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// origin is a manifest with a secret among its data, and a tree to be fetched.
type origin struct {
	host *host.Host
	tree []byte
	// removed says that the fetched tree was.
	removed *int
}

func (o origin) Names(_ context.Context, facts model.Facts, _ map[string]any) (map[string]any, resource.Secrets) {
	names := func(pw any) map[string]any {
		return map[string]any{"pw": pw, "name": "of the manifest", "own": "own"}
	}
	used := false
	lookup := func(path string, _ ...any) (any, error) {
		used = used || path == "data.pw"
		return "<" + path + ">", nil
	}
	take := func() bool { defer func() { used = false }(); return used }

	return map[string]any{"Facts": map[string]any(facts), "Data": names("hunter2"), "Environ": map[string]any{}, "lookup": lookup}, resource.Secrets{Data: names(model.NewSecret("hunter2")), Used: take}
}

func (o origin) Tree(ctx context.Context, source string) (string, func() error, error) {
	if source != "https://example.com/t.tar.gz" {
		return "", nil, fs.ErrNotExist
	}
	dir, err := o.host.TempDir("tree")
	if err != nil {
		return "", nil, err
	}
	err = archive.Unpack(ctx, bytes.NewReader(o.tree), dir, archive.Limits{})

	return dir, func() error {
		*o.removed++
		return os.RemoveAll(dir)
	}, err
}

// What depends on a secret is written, and not shown.
func TestSecretsOfTheManifest(t *testing.T) {
	s := newSubject(t, put("src/plain", "[[ Data.own ]] [[ lookup(\"data.x\") ]]", "src/secret", "pw=[[ Data.pw | upper ]]", "src/own", "[[ Data.name ]]",
		"src/secret-a", `[[ lookup("data.pw") ]]`, "src/secret-b", `[[ render("secret", .) ]]`, "src/secret-c", "[[ x := Data ]][[ x.name ]]"))
	s.env.Scope.Origin, s.spec.Data = origin{host: s.env.Host}, nil
	for _, c := range s.plan().Changes {
		secret := strings.Contains(c.Property, "/secret")
		if (c.Diff == "") != secret || (c.To == model.Redacted) != secret || strings.Contains(fmt.Sprint(c), "HUNTER2") {
			t.Errorf("%+v", c)
		}
	}
	check(t, s.apply())
	has("out", "own", "of the manifest", "plain", "own <data.x>", "secret", "pw=HUNTER2",
		"secret-a", "<data.pw>", "secret-b", "pw=HUNTER2", "secret-c", "of the manifest")(t, s.dir)
}

// packed is a tar.gz of one file.
func packed(t *testing.T, name, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	packed := tar.NewWriter(zipped)
	check(t, packed.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(text))}))
	_, err := packed.Write([]byte(text))
	check(t, errors.Join(err, packed.Close(), zipped.Close()))

	return b.Bytes()
}

// An error of a fetched template does not show the temporary directory.
func TestFetchedErrors(t *testing.T) {
	for want, text := range map[string]string{
		"d/f:2: unknown name `Nope`":                             "\n[[ Nope ]]",
		"could not read a template: d/f: ":                       strings.Repeat(" ", 16<<20+1),
		`d/f:1: render: there is no template "no" in the source`: `[[ render("no", .) ]]`,
		"d/f:1: template /no could not be found":                 `[[ include "/no" ]]`,
		"d/f:1: write: DIR/w is not in target directory DIR/out": `[[ write("../w", "") ]]`,
	} {
		s := newSubject(t, func(*testing.T, string) {}, "source", "https://example.com/t.tar.gz")
		s.env.Scope.Origin = origin{host: s.env.Host, tree: packed(t, "d/f", text), removed: new(int)}
		_, err := s.typ.Status(t.Context(), s.env, scaffold.Choria{}, s.spec)
		if want = strings.ReplaceAll(want, "DIR", s.dir); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), s.env.Host.StateDir()) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// A source that is a URL is fetched, and removed again.
func TestFetchedSource(t *testing.T) {
	s := newSubject(t, func(*testing.T, string) {}, "source", "https://example.com/t.tar.gz")
	removed := 0
	s.env.Scope.Origin = origin{host: s.env.Host, tree: packed(t, "d/f", "[[ Data.name ]]"), removed: &removed}
	check(t, s.apply())
	has("out", "d/", "", "d/f 0755", "app")(t, s.dir)
	if removed == 0 {
		t.Error("the tree was not removed")
	}
	left, err := filepath.Glob(filepath.Join(s.env.Host.StateDir(), "tmp/*"))
	if err != nil || len(left) > 0 {
		t.Error("it left", left, err)
	}
	// A run fetches it once, the next again.
	provider := scaffold.NewChoria()
	for _, tc := range []struct {
		run  string
		more int
	}{{"", 1}, {"", 1}, {"one", 1}, {"one", 0}, {"two", 1}, {"two", 0}} {
		before := removed
		s.env.RunID = tc.run
		_, err := s.typ.Status(t.Context(), s.env, provider, s.spec)
		if check(t, err); removed-before != tc.more {
			t.Errorf("run %q fetched it %d times, not %d", tc.run, removed-before, tc.more)
		}
	}
	s.now("source", "https://example.com/no.tar.gz")
	if _, err := s.typ.Status(t.Context(), s.env, scaffold.Choria{}, s.spec); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "could not fetch the source") {
		t.Error(err)
	}
}

// Nothing touches the disk but the change itself, neither in the state directory
// nor elsewhere, and a template cannot end the process.
func TestRenderingTouchesNothing(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	s := newSubject(t, put("src/f", `[[ write("g", "x") ]][[ render("_partials/p", .) ]]`, "src/_partials/p", "p"))
	s.env.Host = host.New(host.Options{StateDir: filepath.Join(temp, "state")})
	s.says("in noop", changed(2))
	check(t, s.apply())
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 || len(renderedIn(t)) > 0 {
		t.Error("it left", left, err, renderedIn(t))
	}
	s = newSubject(t, put("src/f", `[[ map(1, 2, 3) ]]`))
	if _, err := s.typ.Status(t.Context(), s.env, scaffold.Choria{}, s.spec); err == nil {
		t.Error("no error")
	}
}

// Missing permissions are reported before any change.
func TestMayNotWrite(t *testing.T) {
	for name, tc := range map[string]struct {
		more   []any
		denied bool
	}{
		"present":       {[]any{"source", "other"}, true},
		"absent":        {[]any{"ensure", "absent"}, true},
		"purge":         {[]any{"purge", true}, true},
		"nothing to do": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSubject(t, all(put("other/c", "3", "src/a", "1", "out/a", "1", "out/b", "2")), tc.more...)
			for _, dir := range []string{s.dir, filepath.Dir(s.dir), filepath.Dir(s.env.Host.StateDir()), filepath.Dir(filepath.Dir(s.env.Host.StateDir()))} {
				check(t, os.Chmod(dir, 0o755))
			}
			check(t, os.Chmod(filepath.Join(s.dir, "out"), 0o555))
			t.Cleanup(func() { check(t, os.Chmod(filepath.Join(s.dir, "out"), 0o755)) })
			var state resource.State
			var err error
			hosttest.Powerless(t, func() { state, err = s.typ.Status(t.Context(), s.env, scaffold.Choria{}, s.spec) })
			check(t, err)
			plan, err := s.typ.Plan(s.spec, state, false)
			if errors.Is(err, fs.ErrPermission) != tc.denied || plan.Empty() == tc.denied {
				t.Errorf("%v, %+v", err, plan)
			}
		})
	}
}

// renderedIn gives the directories that something was rendered in.
func renderedIn(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(fmt.Sprintf("/dev/shm/muster-*-%d-scaffold-*", os.Getpid()))
	check(t, err)

	return found
}

// TestRelations orders a scaffold among others.
func TestRelations(t *testing.T) {
	s := newSubject(t, func(*testing.T, string) {}, "name", "/etc/app/d", "source", "/opt/t/")
	got := s.typ.Relations(s.spec)
	if fmt.Sprint(got) != "{[{path:/etc/app/d false} {path:/etc/app true} {path:/etc true}] [{path:/opt/t false true} {path:/etc/app false false} {path:/etc false false}] [] [] [] false}" {
		t.Error(got)
	}
	s.spec.Ensure = model.EnsureAbsent
	if got := s.typ.Relations(s.spec); fmt.Sprint(got) != "{[{emptied:/etc/app/d false} {emptied:/etc/app false}] [{path:/opt/t false true}] [] [] [] false}" {
		t.Error(got)
	}
}
