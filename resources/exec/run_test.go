package exec_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/exec"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
	"golang.org/x/sys/unix"
)

func testEnv(t *testing.T) resource.Env {
	t.Helper()

	return resource.Env{Host: hosttest.New(t), Log: hosttest.Log(t)}
}

func decode(t *testing.T, p typetest.Properties) *exec.Spec {
	t.Helper()
	r, problems := resource.Decode(execType(), typetest.Value(p), model.Position{})
	check(t, problems.Err())

	return r.Spec.(*exec.Spec)
}

// apply looks, plans, applies and verifies, as the engine does.
func apply(ctx context.Context, t *testing.T, env resource.Env, spec *exec.Spec, refresh bool) (resource.Outcome, *exec.State, error) {
	t.Helper()
	typ := execType()
	p, err := typ.Select(nil, spec)
	check(t, err)
	state, err := typ.Status(ctx, env, p, spec)
	check(t, err)
	plan, err := typ.Plan(spec, state, refresh)
	if err != nil {
		return resource.Outcome{}, nil, err
	}
	outcome, err := typ.Apply(ctx, env, p, spec, plan)
	if err != nil {
		return outcome, nil, err
	}
	after, err := typ.Status(ctx, env, p, spec)
	check(t, err)

	return outcome, after.(*exec.State), typ.Verify(spec, outcome, after)
}

func TestExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		properties typetest.Properties
		setup      string
		refresh    bool
		code       int
		says       string
	}{
		"0":                        {properties: typetest.Properties{"command": "exit 0"}},
		"not 0":                    {properties: typetest.Properties{"command": "echo one >&2; echo two >&2; exit 3"}, code: 3, says: "exit code 3, expected 0: one\ntwo"},
		"without stderr":           {properties: typetest.Properties{"command": "echo out; exit 3"}, code: 3, says: "exit code 3, expected 0"},
		"in returns":               {properties: typetest.Properties{"command": "exit 3", "returns": []int{2, 3}}, code: 3},
		"0 not in returns":         {properties: typetest.Properties{"command": "exit 0", "returns": []int{2, 3}}, says: "exit code 0, expected 2, 3"},
		"killed":                   {properties: typetest.Properties{"command": "kill -9 $$"}, code: 137, says: "exit code 137 (killed by signal 9, SIGKILL), expected 0"},
		"killed, and that is fine": {properties: typetest.Properties{"command": "kill -15 $$", "returns": []int{143}}, code: 143},
		"made what it creates":     {properties: typetest.Properties{"command": "echo x > DIR/c; exit 3", "creates": "DIR/c"}, code: 3},
		"did not make it":          {properties: typetest.Properties{"command": "exit 3", "creates": "DIR/c"}, code: 3, says: "exit code 3, expected 0"},
		"removed what it removes":  {properties: typetest.Properties{"command": "rm DIR/r; exit 3", "removes": "DIR/r"}, setup: "r", code: 3},
		"did not remove it":        {properties: typetest.Properties{"command": "exit 3", "removes": "DIR/r"}, setup: "r", code: 3, says: "exit code 3, expected 0"},
		"did one of two":           {properties: typetest.Properties{"command": "rm DIR/r; exit 3", "removes": "DIR/r", "creates": "DIR/c"}, setup: "r", code: 3, says: "exit code 3, expected 0"},
		"did both":                 {properties: typetest.Properties{"command": "mv DIR/r DIR/c; exit 3", "removes": "DIR/r", "creates": "DIR/c"}, setup: "r", code: 3},
		"refresh that fails although what it creates is there": {
			properties: typetest.Properties{"command": "echo bad >&2; exit 3", "creates": "DIR"}, refresh: true,
			code: 3, says: "desired state not achieved: exit code 3, expected 0: bad",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.properties["name"], c.properties["provider"] = name, "shell"
			dir := t.TempDir()
			if c.setup != "" {
				withFile(c.setup, "")(t, dir)
			}
			spec := decode(t, in(c.properties)(dir))
			outcome, after, err := apply(t.Context(), t, testEnv(t), spec, c.refresh)
			if fmt.Sprint(err) != c.says && (err != nil || c.says != "") {
				t.Errorf("error %v, not %q", err, c.says)
			}
			if outcome.ExitCode == nil || *outcome.ExitCode != c.code || outcome.Values["exit_code"] != c.code {
				t.Errorf("outcome %+v", outcome)
			}
			if after != nil && (after.ExitCode == nil || *after.ExitCode != c.code || after.Ensure != "present") {
				t.Errorf("state %+v", after)
			}
		})
	}
}

// TestNotRun checks Verify for a command that did not run.
func TestNotRun(t *testing.T) {
	verify := execType().Verify
	check(t, verify(&exec.Spec{RefreshOnly: true}, resource.Outcome{}, &exec.State{}))
	check(t, verify(&exec.Spec{Creates: "/x"}, resource.Outcome{}, &exec.State{CreatesSatisfied: true}))
	if verify(&exec.Spec{}, resource.Outcome{}, &exec.State{}) == nil {
		t.Error("a command that did not run is accepted")
	}
}

// TestErrors covers commands that cannot start. The plan reports the error, also in noop, with the needs
// that another resource may provide.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	withFile("plain", "no program")(t, dir)
	check(t, os.Chmod(filepath.Join(dir, "plain"), 0o644))
	for name, c := range map[string]struct {
		properties typetest.Properties
		is         error
		refresh    bool
		needs      []string
	}{
		"no such program":              {properties: typetest.Properties{"name": "no-such-program-at-all", "path": "/usr/bin:/bin"}, is: command.ErrNotFound, needs: []string{"path:/usr/bin/no-such-program-at-all", "path:/bin/no-such-program-at-all"}},
		"no such program in its path":  {properties: typetest.Properties{"name": "tool", "path": "DIR"}, is: command.ErrNotFound, needs: []string{"path:DIR/tool"}},
		"no such program at its path":  {properties: typetest.Properties{"name": "DIR/x"}, is: command.ErrNotFound, needs: []string{"path:DIR/x"}},
		"no such program of its argv":  {properties: typetest.Properties{"name": "true", "argv": []string{"my tool", "x"}, "path": "DIR"}, is: command.ErrNotFound, needs: []string{"path:DIR/my tool"}},
		"no such program in its cwd":   {properties: typetest.Properties{"name": "./x", "cwd": "DIR"}, is: command.ErrNotFound, needs: []string{"path:DIR/x"}},
		"no such program on a refresh": {properties: typetest.Properties{"name": "DIR/x", "refresh_only": true}, refresh: true, is: command.ErrNotFound, needs: []string{"path:DIR/x"}},
		"no such directory":            {properties: typetest.Properties{"name": "true", "cwd": "DIR/none/"}, is: command.ErrNoDir, needs: []string{"path:DIR/none"}},
		"no such directory of a shell": {properties: typetest.Properties{"name": "nothing", "provider": "shell", "cwd": "DIR/none"}, is: command.ErrNoDir, needs: []string{"path:DIR/none"}},
		"no such user":                 {properties: typetest.Properties{"name": "true", "user": "no-such-user"}, is: host.ErrNoAccount, needs: []string{"user:no-such-user", "path:/etc/passwd"}},
		"no such group":                {properties: typetest.Properties{"name": "true", "group": "no-such-group"}, is: host.ErrNoAccount, needs: []string{"group:no-such-group", "path:/etc/group"}},
		"no such group on a refresh":   {properties: typetest.Properties{"name": "true", "group": "no-such-group", "refresh_only": true}, refresh: true, is: host.ErrNoAccount, needs: []string{"group:no-such-group", "path:/etc/group"}},
		"no program":                   {properties: typetest.Properties{"name": "DIR/plain"}, is: os.ErrPermission},
		"no program, but not needed":   {properties: typetest.Properties{"name": "DIR/plain", "creates": "DIR"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := decode(t, in(c.properties)(dir))
			typ, env := execType(), testEnv(t)
			p, err := typ.Select(nil, spec)
			check(t, err)
			state, err := typ.Status(t.Context(), env, p, spec)
			check(t, err)
			plan, err := typ.Plan(spec, state, c.refresh)
			needs := resource.Prerequisites(err)
			if want := strings.ReplaceAll(strings.Join(c.needs, " "), "DIR", dir); !errors.Is(err, c.is) || strings.Join(needs, " ") != want {
				t.Errorf("%v needs %q, not %q", err, needs, want)
			}
			if plan.Empty() != (c.is == nil) {
				t.Errorf("%+v", plan)
			}
		})
	}
}

// TestNoCommand covers the rows "empty command string" and "invalid quoting" of
// the providers' own tables.
func TestNoCommand(t *testing.T) {
	env := testEnv(t)
	_, err := exec.Posix{}.Execute(t.Context(), env, " ", command.Command{})
	if err == nil || err.Error() != "no command specified" {
		t.Errorf("%v", err)
	}
	_, err = exec.Shell("/bin/sh").Execute(t.Context(), env, " ", command.Command{})
	if err == nil || err.Error() != "no command to execute" {
		t.Errorf("%v", err)
	}
	_, err = exec.Posix{}.Execute(t.Context(), env, "'", command.Command{})
	if err == nil || !strings.Contains(err.Error(), "Unterminated single") {
		t.Errorf("%v", err)
	}
}

// TestTimeout checks that a hanging command is killed with its children, and that the error has its
// output. Both processes hold a fifo open, so the fifo ends with the last process.
func TestTimeout(t *testing.T) {
	dir := t.TempDir()
	check(t, unix.Mkfifo(filepath.Join(dir, "alive"), 0o600))
	alive, err := os.OpenFile(filepath.Join(dir, "alive"), os.O_RDONLY|unix.O_NONBLOCK, 0)
	check(t, err)
	defer alive.Close()
	spec := decode(t, typetest.Properties{
		"name": "hang", "provider": "shell", "cwd": dir, "logoutput": true,
		"command": "exec 3>alive; sleep 1000 & echo about to hang >&2; wait",
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	env := testEnv(t)
	env.Log = slog.New(onMessage{"about to hang", func() { cancel(errors.New("timed out after 30s")) }})
	_, _, err = apply(ctx, t, env, spec, false)
	if err == nil || err.Error() != "/bin/sh: timed out after 30s: about to hang" {
		t.Errorf("%v", err)
	}
	if _, err := io.ReadAll(alive); err != nil {
		t.Errorf("waiting for the end of the children: %v", err)
	}
}

// TestGuardTimeout checks that a guard without an answer is an error.
func TestGuardTimeout(t *testing.T) {
	typ, env := exec.Type{}, testEnv(t)
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errors.New("timed out after 1ms"))
	defer cancel()
	_, err := typ.EvalGuards(ctx, env, exec.Shell("/bin/sh"), &exec.Spec{OnlyIf: "sleep 1000"}, &exec.State{})
	if err == nil || !strings.Contains(err.Error(), "onlyif could not be run") || !strings.Contains(err.Error(), "timed out after 1ms") {
		t.Errorf("%v", err)
	}
}

// TestGuardThatIsKilled checks that a guard that a signal ended did not finish,
// and that a shell that reports such an end did.
func TestGuardThatIsKilled(t *testing.T) {
	typ, env := exec.Type{}, testEnv(t)
	probe := typ.EvalGuards
	for _, c := range []struct{ onlyif, unless, says string }{
		{onlyif: "kill -9 $$", says: "onlyif did not finish (killed by signal 9, SIGKILL)"},
		{unless: "kill -15 $$", says: "unless did not finish (killed by signal 15, SIGTERM)"},
		{onlyif: "exit 137"},
		{unless: "exit 143"},
	} {
		_, err := probe(t.Context(), env, exec.Shell("/bin/sh"), &exec.Spec{OnlyIf: c.onlyif, Unless: c.unless}, &exec.State{})
		if fmt.Sprint(err) != cmp.Or(c.says, "<nil>") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestFlood checks that output without end is bounded, in values and errors.
func TestFlood(t *testing.T) {
	spec := decode(t, typetest.Properties{"name": "flood", "provider": "shell",
		"command": "echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last; head -c 100000 /dev/zero >&2; exit 1"})
	outcome, _, err := apply(t.Context(), t, testEnv(t), spec, false)
	stdout := outcome.Values["stdout"].(string)
	if len(stdout) > 40<<10 || !strings.HasPrefix(stdout, "first\n") || !strings.HasSuffix(stdout, "\nlast") || !strings.Contains(stdout, "bytes dropped") {
		t.Errorf("%d bytes of stdout", len(stdout))
	}
	if err == nil || len(err.Error()) > 4<<10 {
		t.Errorf("the error has %d bytes", len(fmt.Sprint(err)))
	}
}

func TestValues(t *testing.T) {
	spec := decode(t, typetest.Properties{"name": "values", "provider": "shell", "command": "printf '\\n a\\377b \\n\\n'; echo err >&2"})
	outcome, after, err := apply(t.Context(), t, testEnv(t), spec, false)
	check(t, err)
	want := map[string]any{"stdout": "a\uFFFDb", "stderr": "err", "exit_code": 0}
	if !reflect.DeepEqual(outcome.Values, want) {
		t.Errorf("%+v", outcome.Values)
	}
	outputs := execType().Outputs(spec, after, outcome)
	outputs["stdout"] = "changed"
	if outcome.Values["stdout"] != want["stdout"] {
		t.Error("outputs are not a copy")
	}
}

// TestEnvironment checks cwd, environment, path and the variables that connect a started muster with
// its run.
func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("MUSTER_SECRET", "no")
	t.Setenv("NATS_CREDS", "no")
	t.Setenv("KEPT", "yes")
	withFile("mine", "#!/bin/sh\necho $PWD $A $KEPT $PATH $MUSTER_RUN $MUSTER_SECRET $NATS_CREDS\n")(t, dir)
	spec := decode(t, typetest.Properties{"name": "mine", "cwd": dir, "path": dir + ":/usr/bin:/bin", "environment": []string{"A=b=c"}})
	env := testEnv(t)
	env.RunEnv = []string{"MUSTER_RUN=42"}
	outcome, _, err := apply(t.Context(), t, env, spec, false)
	check(t, err)
	if want := dir + " b=c yes " + dir + ":/usr/bin:/bin 42"; outcome.Values["stdout"] != want {
		t.Errorf("%q, not %q", outcome.Values["stdout"], want)
	}
	if !slices.Equal(spec.Environment, []string{"A=b=c"}) {
		t.Errorf("the properties were changed: %v", spec.Environment)
	}
}

func TestLogOutput(t *testing.T) {
	const command = "printf 'one\\n\\ntwo'; echo three >&2"
	for name, c := range map[string]struct {
		properties typetest.Properties
		want       []string
	}{
		"off":       {properties: typetest.Properties{}},
		"on":        {properties: typetest.Properties{"logoutput": true}, want: []string{"", "one", "three", "two"}},
		"sensitive": {properties: typetest.Properties{"logoutput": true, "sensitive": true}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			env := testEnv(t)
			env.Log = slog.New(infos{&got})
			c.properties["name"], c.properties["provider"] = command, "shell"
			_, _, err := apply(t.Context(), t, env, decode(t, c.properties), false)
			check(t, err)
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("logged %q", got)
			}
		})
	}
}

func TestSelect(t *testing.T) {
	for named, want := range map[string]string{"": "posix", "posix": "posix", "shell": "shell"} {
		p, err := execType().Select(nil, &exec.Spec{Common: model.Common{Name: "true", Provider: named}})
		check(t, err)
		if p.Name() != want {
			t.Errorf("%q selects %s", named, p.Name())
		}
	}
	for p, want := range map[resource.Provider]int{exec.Posix{}: 1, exec.Shell("/bin/sh"): 99} {
		if ok, priority, err := p.IsManageable(nil, nil); !ok || priority != want || err != nil {
			t.Errorf("%s: %v, %d, %v", p.Name(), ok, priority, err)
		}
	}
	if ok, _, err := exec.Shell("/nowhere").IsManageable(nil, nil); ok || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a shell: %v, %v", ok, err)
	}
}

func TestRelations(t *testing.T) {
	for name, c := range map[string]struct {
		spec exec.Spec
		want resource.Relations
	}{
		"a name": {spec: exec.Spec{Common: model.Common{Name: "make all"}}},
		"all": {
			spec: exec.Spec{Common: model.Common{Name: "x"}, Command: "/opt/bin/make 'a b'", Cwd: "/opt/src", Creates: "/opt/./x", OnlyIf: "/opt/bin/check"},
			want: resource.Relations{Provides: resource.Provides("path:/opt/x"), SkipIfExists: []string{"path:/opt/x"}, Needs: resource.Needs("path:/opt/src", "path:/opt", "path:/opt/bin/make", "path:/opt/bin", "path:/opt/bin/check")},
		},
		"argv": {
			spec: exec.Spec{Common: model.Common{Name: "/bin/x"}, Argv: []string{"/opt/bin/my tool", "/opt/a"}},
			want: resource.Relations{Needs: resource.Needs("path:/opt/bin/my tool", "path:/opt/bin", "path:/opt")},
		},
		"shell": {spec: exec.Spec{Common: model.Common{Name: "/bin/x | /bin/y", Provider: "shell"}}},
		"removes": {
			spec: exec.Spec{Common: model.Common{Name: "x"}, Removes: "/opt//x"},
			want: resource.Relations{Provides: resource.Provides("emptied:/opt"), Removes: []string{"path:/opt/x"}, SkipIfAbsent: []string{"path:/opt/x"}, Needs: resource.Needs("path:/opt/x")},
		},
		"user and group": {
			spec: exec.Spec{Common: model.Common{Name: "x"}, User: "app", Group: "web"},
			want: resource.Relations{Needs: resource.Needs("user:app", "path:/etc/passwd", "group:web", "path:/etc/group")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := execType().Relations(&c.spec); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v, not %+v", got, c.want)
			}
		})
	}
}

// infos collects the messages of a log; onMessage calls when one comes.
type (
	infos     struct{ got *[]string }
	onMessage struct {
		message string
		call    func()
	}
)

func (infos) Enabled(_ context.Context, l slog.Level) bool { return l == slog.LevelInfo }
func (h infos) WithAttrs([]slog.Attr) slog.Handler         { return h }
func (h infos) WithGroup(string) slog.Handler              { return h }
func (h infos) Handle(_ context.Context, r slog.Record) error {
	*h.got = append(*h.got, r.Message)
	return nil
}

func (onMessage) Enabled(context.Context, slog.Level) bool { return true }
func (h onMessage) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h onMessage) WithGroup(string) slog.Handler          { return h }
func (h onMessage) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.message {
		h.call()
	}
	return nil
}

// TestSecretInput checks that the input is shown nowhere, and that only a line that may be a password is searched for.
func TestSecretInput(t *testing.T) {
	for input, want := range map[string]string{"": "", "yes\n": "", "correct-horse\n": "correct-horse", "select 1;\nselect 2;\n": ""} {
		r, problems := resource.Decode(execType(), typetest.Value(typetest.Properties{"name": "x", "stdin": input}), model.Position{})
		check(t, problems.Err())
		if r.Sensitive() != (input != "") {
			t.Errorf("%q: sensitive %v", input, r.Sensitive())
		}
		for _, s := range r.Secrets {
			if s.IsDerived() != (want == "") || want != "" && s.Reveal() != want {
				t.Errorf("%q: %q", input, s.Reveal())
			}
		}
	}
}
