package scaffold_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// validateCases are scaffolds with validate; that no look runs it is a rule of
// all cases.
func validateCases() []typetest.Case {
	const accepts = "sh -c 'test -x bin/run && test `cat $0/app.conf | wc -l` = 1 && test `find . -type f | wc -l` = 2' {}"
	done := all(two(), renderedBelow("out"))
	first := func(n int) string { return changed(n) + ", validated first" }

	return []typetest.Case{
		{Name: "validate, no target", Setup: two(), Properties: of("validate", accepts), Message: first(2), Check: has("out", rendered()...)},
		{Name: "validate, a missing file", Setup: all(two(), put("out/app.conf", "name = app\n")), Properties: of("validate", accepts), Message: first(1), Check: has("out", rendered()...)},
		{Name: "validate, stable", Setup: done, Properties: of("validate", "false {}")},
		{Name: "validate, what is purged is not in the tree", Setup: all(done, put("out/extra", "x")), Properties: of("validate", accepts, "purge", true), Message: first(1), Check: has("out", rendered()...)},
		{Name: "validate, no templates", Setup: directory("src"), Properties: of("validate", "test -d {}"), Message: first(0), Check: has("out")},
		{Name: "validate, absent", Setup: done, Properties: of("validate", "false {}", "ensure", "absent"), Message: removed(2), Check: has("out", "nothing")},
	}
}

// What validate refuses changes nothing.
func TestValidateRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		command, want string
		is            error
	}{
		"exit code":  {`sh -c "echo no such directive >&2; exit 3" {}`, "validate: sh ended with exit code 3: no such directive", nil},
		"silent":     {"false {}", "validate: false ended with exit code 1", nil},
		"no program": {"no-such-validator {}", "validate: command not found: no-such-validator is not in ", command.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSubject(t, all(two(), put("out/app.conf", "old", "out/extra", "x")), "validate", tc.command, "purge", true)
			before := hosttest.Snapshot(t, s.dir)
			if err := s.apply(); err == nil || !strings.HasPrefix(err.Error(), tc.want) || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
			if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, s.dir)); len(diff) > 0 {
				t.Errorf("something was changed: %q", diff)
			}
			left, err := filepath.Glob(filepath.Join(s.env.Host.StateDir(), "tmp", "*"))
			check(t, err)
			if len(left) > 0 {
				t.Errorf("it left %q", left)
			}
		})
	}
}

// No other user can reach the validated files.
func TestValidatedTreeIsPrivate(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	s := newSubject(t, two(), "validate", "sh -c 'stat -c %a $0/.. >"+seen+"; pwd >>"+seen+"' {}")
	check(t, s.apply())
	text, err := os.ReadFile(seen)
	check(t, err)
	mode, dir, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if mode != "700" || filepath.Base(dir) != "out" || !strings.HasPrefix(dir, s.env.Host.StateDir()+"/tmp/") {
		t.Errorf("%q", text)
	}
}
