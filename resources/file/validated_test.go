package file_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/file"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// validateCases are files with validate; that no look runs it is a rule of all cases.
func validateCases(t *testing.T) []typetest.Case {
	const created, updated = "Would have created the file, validated first", "Would have updated the file, validated first"
	greets := typetest.Properties{"content": "hello\n", "validate": "grep -q hello {}"}
	refuses := typetest.Properties{"content": "hello\n", "validate": "false {}"}
	copied := typetest.Properties{"source": "f", "validate": "grep -q from {}"}

	return []typetest.Case{
		{Name: "validate, absent", Properties: owned(t, "x", greets), Message: created, Check: holds("x", "hello\n", 0o644)},
		{Name: "validate, other", Setup: withFile("x", "old", 0o644), Properties: owned(t, "x", greets), Message: updated, Check: holds("x", "hello\n", 0o644)},
		{Name: "validate, the same", Setup: withFile("x", "hello\n", 0o644), Properties: owned(t, "x", refuses), Check: holds("x", "hello\n", 0o644)},
		{Name: "validate, other mode", Setup: withFile("x", "hello\n", 0o600), Properties: owned(t, "x", refuses), Message: "Would have updated the file", Check: holds("x", "hello\n", 0o644)},
		{Name: "validate, source", Setup: withFile("f", "from\n", 0o600), Properties: owned(t, "x", copied), Message: created, Check: holds("x", "from\n", 0o644)},
		{Name: "validate, link", Setup: all(withFile("f", "kept", 0o644), withLink("x", "f")), Properties: owned(t, "x", greets), Message: "Would have replaced the symbolic link with the file, validated first", Check: holds("f", "kept", 0o644)},
		{Name: "validate, in a directory of everybody", Setup: openTo("o"), Properties: owned(t, "o/x", greets), Message: created, Check: holds("o/x", "hello\n", 0o644)},
		{Name: "validate, in a directory of everybody, source", Setup: all(openTo("o"), withFile("f", "from\n", 0o600)), Properties: owned(t, "o/x", copied), Message: created, Check: holds("o/x", "from\n", 0o644)},
	}
}

// stored applies a file x with content new, in a directory below dir, with validate.
func stored(t *testing.T, dir, below, validate string) (resource.Outcome, error) {
	t.Helper()
	env := testEnv(t, dir)
	spec := specOf(t, owned(t, filepath.Join(below, "x"), typetest.Properties{"content": "new", "validate": validate})(dir))
	typ := file.Type{}
	plan, err := typ.Plan(spec, stateOf(t, env, spec), false)
	check(t, err)

	return typ.Apply(t.Context(), env, file.Posix{}, spec, plan)
}

func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "validator")
	check(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755))

	return path
}

// A rejected file does not replace the existing file.
func TestValidateRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		validate, want string
		is             error
	}{
		"fails":           {script(t, "echo line 3: no such directive >&2; exit 3") + " {}", "validate: VALIDATOR ended with exit code 3: line 3: no such directive", nil},
		"prints nothing":  {"false {}", "validate: false ended with exit code 1", nil},
		"prints its path": {script(t, "echo $1: line 3 >&2; exit 3") + " {}", "validate: VALIDATOR ended with exit code 3: TARGET: line 3", nil},
		"cannot be found": {"no-such-validator -t {}", "validate: command not found: no-such-validator is not in ", command.ErrNotFound},
		"changes it":      {script(t, "echo more >>$1") + " {}", "the command that checks the file changed it", files.ErrChanged},
		"replaces it":     {script(t, "cp $1 $1.new && mv $1.new $1") + " {}", "the command that checks the file changed it", files.ErrChanged},
	} {
		for _, below := range []string{"private", "open"} {
			t.Run(name+", "+below, func(t *testing.T) {
				dir := t.TempDir()
				all(withFile("private/x", "old", 0o600), openTo("open"), withFile("open/x", "old", 0o600))(t, dir)
				before := hosttest.Snapshot(t, dir)
				outcome, err := stored(t, dir, below, c.validate)
				want := strings.NewReplacer("VALIDATOR", strings.TrimSuffix(c.validate, " {}"), "TARGET", filepath.Join(dir, below, "x")).Replace(c.want)
				if err == nil || !strings.HasPrefix(err.Error(), want) || c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("got  %v\nwant %s", err, want)
				}
				diff := slices.DeleteFunc(hosttest.SnapshotDiff(before, hosttest.Snapshot(t, dir)), func(line string) bool {
					// The new file was there for a while.
					return strings.HasPrefix(line, below+": time was")
				})
				if len(diff) > 0 || !outcome.Untouched {
					t.Errorf("something was changed: %q, %+v", diff, outcome)
				}
			})
		}
	}
}

// The output is hidden where a resource is sensitive.
func TestValidateHidesOutput(t *testing.T) {
	_, err := stored(t, t.TempDir(), "", script(t, "cat $1; exit 1")+" {}")
	if err == nil || !strings.Contains(err.Error(), ": new") || strings.Contains(resource.WithoutOutput(err), "new") {
		t.Error(err)
	}
}

// The new file is complete and in the directory of the old one. Where other users may exchange files, it
// has its final name in a private directory.
func TestValidatedPlace(t *testing.T) {
	for below, name := range map[string]string{"private": ".muster-*", "open": "x"} {
		t.Run(below, func(t *testing.T) {
			dir := t.TempDir()
			all(withDir("private", 0o755), openTo("open"))(t, dir)
			seen := filepath.Join(t.TempDir(), "seen")
			_, err := stored(t, dir, below, script(t, "echo $1 `stat -c %a $1` `cat $1` `pwd` `stat -c %a .`>"+seen)+" {}")
			check(t, err)
			text, err := os.ReadFile(seen)
			check(t, err)
			words := strings.Fields(string(text))
			matched, err := filepath.Match(name, filepath.Base(words[0]))
			check(t, err)
			if !matched || words[1] != "644" || words[2] != "new" || words[3] != filepath.Dir(words[0]) {
				t.Errorf("%q is not %s", words, name)
			}
			if inside := words[3] == filepath.Join(dir, below); inside != (below == "private") || !inside && words[4] != "700" {
				t.Errorf("it is in %s, of mode %s", words[3], words[4])
			}
			holds(below+"/x", "new", 0o644)(t, dir)
		})
	}
}
