package exec_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/exec"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/typetest"
)

func execType() *resource.Type { return exec.New(exec.Posix{}, exec.Shell("/bin/sh")) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// in returns properties and replaces DIR by the directory of the case.
func in(p typetest.Properties) func(string) typetest.Properties {
	return func(dir string) typetest.Properties {
		out := typetest.Properties{}
		for key, value := range p {
			if text, ok := value.(string); ok {
				value = strings.ReplaceAll(text, "DIR", dir)
			}
			out[key] = value
		}
		return out
	}
}

func withFile(name, content string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		check(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755))
	}
}

// holds checks what a command wrote; nothing means that it did not run.
func holds(name, content string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		got, err := os.ReadFile(filepath.Join(dir, name))
		if content == "" && os.IsNotExist(err) {
			return
		}
		if err != nil || string(got) != content {
			t.Errorf("%s holds %q, not %q: %v", name, got, content, err)
		}
	}
}

// lie reports a failing exit code and a missing path.
func lie(before resource.State, outcome resource.Outcome) (resource.Outcome, resource.State) {
	failed := 99
	outcome.ExitCode = &failed
	state := *before.(*exec.State)
	state.CreatesSatisfied, state.RemovesSatisfied = false, false

	return outcome, &state
}

func TestContract(t *testing.T) {
	// Observing may only run the guards of the cases.
	asks := func(command string) bool {
		return !strings.Contains(command, "echo ran") && !strings.Contains(command, "touch ")
	}
	typetest.Run(t, typetest.Config{Type: execType(), ReadOnly: asks, Lie: lie, Cases: append(decisionCases(), guardCases()...)})
}

// run is a command that leaves "ran" in the file ran.
func run(more typetest.Properties) func(string) typetest.Properties {
	p := typetest.Properties{"name": "run", "command": "echo ran >> DIR/ran", "provider": "shell"}
	for key, value := range more {
		p[key] = value
	}

	return in(p)
}

const would, via = "Would have executed", "Would have executed via subscribe"

// decisionCases are the rows of the decision table, with and without a trigger.
func decisionCases() []typetest.Case {
	ran, self := holds("ran", "ran\n"), strconv.Itoa(os.Geteuid())

	return []typetest.Case{
		{Name: "nothing said", Properties: run(nil), Message: would, Repeats: true, Check: ran},
		{Name: "nothing said, refresh", Properties: run(nil), Refresh: true, Message: via, Repeats: true, Check: ran},
		{Name: "creates, there", Setup: withFile("c", ""), Properties: run(typetest.Properties{"creates": "DIR/c"}), Check: holds("ran", "")},
		{Name: "creates, there, refresh", Setup: withFile("c", ""), Properties: run(typetest.Properties{"creates": "DIR/c"}), Refresh: true, Message: via, Check: ran},
		{Name: "creates, not there", Properties: run(typetest.Properties{"creates": "DIR/ran"}), Message: would, Check: ran},
		{Name: "creates, gone again", Properties: run(typetest.Properties{"creates": "DIR/ran"}), Message: would, Drift: func(t testing.TB, dir string) { check(t, os.Remove(dir+"/ran")) }},
		{Name: "creates, a directory", Properties: run(typetest.Properties{"creates": "DIR"}), Check: holds("ran", "")},
		{
			Name: "creates, a dangling link", Properties: run(typetest.Properties{"creates": "DIR/l"}), Check: holds("ran", ""),
			Setup: func(t *testing.T, dir string) { check(t, os.Symlink("nowhere", filepath.Join(dir, "l"))) },
		},
		{Name: "removes, not there", Properties: run(typetest.Properties{"removes": "DIR/r"}), Check: holds("ran", "")},
		{Name: "removes, not there, refresh", Properties: run(typetest.Properties{"removes": "DIR/r"}), Refresh: true, Message: via, Check: ran},
		{Name: "removes, there", Setup: withFile("r", ""), Properties: run(typetest.Properties{"command": "rm DIR/r; echo ran >> DIR/ran", "removes": "DIR/r"}), Message: would, Check: ran},
		{Name: "removes, there, kept", Setup: withFile("r", ""), Properties: run(typetest.Properties{"removes": "DIR/r"}), Message: would, Repeats: true, Check: ran},
		{Name: "removes, back again", Setup: withFile("r", ""), Properties: run(typetest.Properties{"command": "rm DIR/r; echo ran >> DIR/ran", "removes": "DIR/r"}), Message: would, Drift: func(t testing.TB, dir string) {
			check(t, os.WriteFile(dir+"/r", nil, 0o644))
		}},
		{
			Name: "removes, a dangling link", Properties: run(typetest.Properties{"command": "rm DIR/l; echo ran >> DIR/ran", "removes": "DIR/l"}), Message: would, Check: ran,
			Setup: func(t *testing.T, dir string) { check(t, os.Symlink("nowhere", filepath.Join(dir, "l"))) },
		},
		{Name: "removes and creates, both due", Setup: withFile("r", ""), Properties: run(typetest.Properties{"command": "mv DIR/r DIR/c; echo ran >> DIR/ran", "removes": "DIR/r", "creates": "DIR/c"}), Message: would, Check: ran},
		{Name: "removes and creates, created", Setup: func(t *testing.T, dir string) { withFile("r", "")(t, dir); withFile("c", "")(t, dir) }, Properties: run(typetest.Properties{"removes": "DIR/r", "creates": "DIR/c"}), Check: holds("ran", "")},
		{Name: "removes and creates, none", Properties: run(typetest.Properties{"removes": "DIR/r", "creates": "DIR/c"}), Check: holds("ran", "")},
		{Name: "refresh_only", Properties: run(typetest.Properties{"refresh_only": true}), Check: holds("ran", "")},
		{Name: "refreshonly, refresh", Properties: run(typetest.Properties{"refreshonly": true}), Refresh: true, Message: via, Check: ran},
		{Name: "refresh_only, creates not there", Properties: run(typetest.Properties{"refresh_only": true, "creates": "DIR/c"}), Check: holds("ran", "")},
		{Name: "the name is the command", Properties: in(typetest.Properties{"name": "touch 'DIR/a b'", "creates": "DIR/a b"}), Message: would},
		{Name: "argv", Properties: func(dir string) typetest.Properties {
			return typetest.Properties{"name": "it's no command", "argv": []string{"touch", dir + "/a b'$HOME"}, "creates": dir + "/a b'$HOME"}
		}, Message: would, Check: holds("a b'$HOME", "")},
		{Name: "posix, no shell", Properties: in(typetest.Properties{"name": "touch DIR/$HOME", "creates": "DIR/$HOME", "cwd": "DIR"}), Message: would, Check: holds("$HOME", "")},
		{Name: "umask", Properties: run(typetest.Properties{"command": "umask >> DIR/ran", "umask": "0027"}), Message: would, Repeats: true, Check: holds("ran", "0027\n")},
		{Name: "umask, default", Properties: run(typetest.Properties{"command": "umask >> DIR/ran"}), Message: would, Repeats: true, Check: holds("ran", "0022\n")},
		{Name: "stdin", Properties: run(typetest.Properties{"command": "cat >> DIR/ran", "stdin": "two\nlines\n"}), Message: would, Repeats: true, Check: holds("ran", "two\nlines\n")},
		{Name: "stdin, none", Properties: run(typetest.Properties{"command": "cat >> DIR/ran; echo end >> DIR/ran"}), Message: would, Repeats: true, Check: holds("ran", "end\n")},
		{Name: "stdin, not for guards", Properties: run(typetest.Properties{"stdin": "ran\n", "command": "cat >> DIR/ran", "unless": "grep ran || test -e DIR/ran"}), Message: would, Check: ran},
		{Name: "stdin, not read", Properties: run(typetest.Properties{"stdin": strings.Repeat("x", 1<<20)}), Message: would, Repeats: true, Check: ran},
		{
			Name: "user and group, own", Message: would, Repeats: true, Check: holds("ran", "/ "+self+" "+self+"\n"),
			Properties: run(typetest.Properties{"command": "echo $(pwd) $(id -u) $(id -u) >> DIR/ran", "user": self, "group": strconv.Itoa(os.Getegid())}),
		},
		{Name: "user, own, cwd", Properties: run(typetest.Properties{"command": "pwd >> DIR/ran; test $(pwd) = DIR", "user": self, "group": strconv.Itoa(os.Getegid()), "cwd": "DIR"}), Message: would, Repeats: true},
		{Name: "user that does not exist", Properties: run(typetest.Properties{"user": "no-such-user"}), Error: `could not lookup user "no-such-user": no such account`, Check: holds("ran", "")},
		{Name: "group that does not exist", Properties: run(typetest.Properties{"group": "no-such-group"}), Error: `could not lookup group "no-such-group": no such account`},
		{Name: "user without an account", Properties: run(typetest.Properties{"user": "3999999999"}), Error: "user 3999999999 has no account and so no primary group: set `group` too"},
		{Name: "user that does not exist, not needed", Properties: run(typetest.Properties{"user": "no-such-user", "creates": "DIR"}), Check: holds("ran", "")},
		{Name: "user that does not exist, guard", Properties: run(typetest.Properties{"user": "no-such-user", "unless": "true"}), Error: "unless could not be run: could not lookup user"},
		{Name: "returns", Properties: run(typetest.Properties{"command": "echo ran >> DIR/ran; exit 3", "returns": []int{1, 3}}), Message: would, Repeats: true, Check: ran},
	}
}

// guardCases are the answers of onlyif and unless, without and with a refresh.
func guardCases() []typetest.Case {
	ran, not := holds("ran", "ran\n"), holds("ran", "")
	onlyif := run(typetest.Properties{"onlyif": "test ! -e DIR/ran"})
	unless := run(typetest.Properties{"unless": "test -e DIR/ran"})
	posix := typetest.Properties{"name": "touch ran", "cwd": "DIR", "path": "DIR/bin:/usr/bin:/bin", "environment": []string{"WANT=yes"}, "unless": "mine"}

	return []typetest.Case{
		{Name: "onlyif holds", Properties: onlyif, Message: would, Check: ran},
		{Name: "onlyif does not", Properties: run(typetest.Properties{"onlyif": "exit 1"}), Check: not},
		{Name: "onlyif does not, refresh", Properties: run(typetest.Properties{"onlyif": "exit 1"}), Refresh: true, Message: via, Check: ran},
		{Name: "onlyif holds, refresh", Properties: onlyif, Refresh: true, Message: via, Check: ran},
		{Name: "unless fails", Properties: unless, Message: would, Check: ran},
		{Name: "unless holds", Properties: run(typetest.Properties{"unless": "true"}), Check: not},
		{Name: "unless holds, refresh", Properties: run(typetest.Properties{"unless": "true"}), Refresh: true, Message: via, Check: ran},
		{Name: "both let it", Properties: run(typetest.Properties{"onlyif": "true", "unless": "test -e DIR/ran"}), Message: would, Check: ran},
		{Name: "onlyif lets it, unless does not", Properties: run(typetest.Properties{"onlyif": "true", "unless": "true"}), Check: not},
		{Name: "refresh_only does not ask", Properties: run(typetest.Properties{"refresh_only": true, "onlyif": "touch DIR/ran"}), Check: not},
		{Name: "creates does not ask", Setup: withFile("c", ""), Properties: run(typetest.Properties{"creates": "DIR/c", "unless": "touch DIR/ran"}), Check: not},
		{
			Name: "a guard has cwd, environment and path", Properties: in(posix), Message: would, Check: holds("ran", ""),
			Setup: func(t *testing.T, dir string) {
				check(t, os.Mkdir(filepath.Join(dir, "bin"), 0o755))
				withFile("bin/mine", "#!/bin/sh\n[ \"$WANT $PWD\" = \"yes "+dir+"\" ] && test -e ran\n")(t, dir)
			},
		},
		{Name: "a guard that is not there", Properties: in(typetest.Properties{"name": "true", "onlyif": "DIR/no-such-program"}), Error: "onlyif could not be run: "},
		{Name: "no directory for a guard", Properties: in(typetest.Properties{"name": "true", "cwd": "DIR/none", "unless": "true"}), Error: "unless could not be run: "},
	}
}
