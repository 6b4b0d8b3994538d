//go:build system

package rigs_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/rigs"
)

// build makes the binary as it is released.
func build(t testing.TB) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "muster")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/muster")
	cmd.Dir = rigs.Checkout(t)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building muster: %v\n%s", err, out)
	}

	return binary
}

// TestExamplesApply applies each example to a new machine.
func TestExamplesApply(t *testing.T) {
	examples := filepath.Join(rigs.Checkout(t), "examples")
	manifests, err := filepath.Glob(filepath.Join(examples, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	bundles, err := filepath.Glob(filepath.Join(examples, "*", "manifest.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	manifests = append(manifests, bundles...)
	if len(manifests) < 6 {
		t.Fatalf("there are only %q", manifests)
	}
	muster := build(t)
	for _, path := range manifests {
		name, err := filepath.Rel(examples, path)
		if err != nil {
			t.Fatal(err)
		}
		if name == siteExample {
			continue // it needs a machine with packages and services
		}
		for _, programs := range [][]string{nil, {"sshd", "systemctl", "sysctl", "logrotate"}} {
			what := name + " on a bare machine"
			if programs != nil {
				what = name + " where its guards find the programs"
			}
			t.Run(what, func(t *testing.T) {
				m := rigs.New(t)
				m.Copy(muster, "/usr/local/bin/muster")
				m.Copy(examples, "/root/examples")
				for _, program := range programs {
					m.Copy("/bin/true", "/usr/sbin/"+program)
				}
				applyTwice(t, m, "/root/examples/"+name)
			})
		}
	}
}

// applyTwice runs noop, apply, and apply again, which must change nothing.
func applyTwice(t *testing.T, m *rigs.Machine, path string) {
	before := m.Changes()
	would := apply(t, m, "--noop", path)
	if diff := hosttest.SnapshotDiff(before, m.Changes()); len(diff) > 0 {
		t.Errorf("noop changed the machine:\n%s", strings.Join(diff, "\n"))
	}
	did := apply(t, m, path)
	same(t, would, did)

	before = withoutState(m.Changes())
	for _, tx := range apply(t, m, path) {
		if tx.Changed || tx.Refreshed {
			t.Errorf("%s is not stable the second time: %+v", tx.Ref(), tx.Changes)
		}
	}
	if diff := hosttest.SnapshotDiff(before, withoutState(m.Changes())); len(diff) > 0 {
		t.Errorf("the second run changed the machine:\n%s", strings.Join(diff, "\n"))
	}
	for _, tx := range apply(t, m, "--noop", path) {
		if tx.Changed {
			t.Errorf("%s would be changed again: %+v", tx.Ref(), tx.Changes)
		}
	}
}

// same compares the results of a run with noop, resource by resource.
func same(t *testing.T, would, did []model.Transaction) {
	t.Helper()
	if len(would) != len(did) {
		t.Fatalf("noop predicts %d resources, the run of %d", len(would), len(did))
	}
	changed := 0
	for i := range did {
		w, d := &would[i], &did[i]
		switch {
		case w.Ref() != d.Ref():
			t.Errorf("noop predicts %s where the run has %s", w.Ref(), d.Ref())
		case strings.HasPrefix(w.NoopMessage, "unknown until ") && !d.Changed && !d.Refreshed:
			// A guard forbids it now, and may permit it after an earlier resource. Noop counts no change, and
			// in the examples the run makes none.
		case w.Changed != d.Changed || w.Refreshed != d.Refreshed || w.Skipped != d.Skipped:
			t.Errorf("%s: noop says changed %t, refreshed %t, skipped %t (%s); the run %t, %t, %t", w.Ref(), w.Changed, w.Refreshed, w.Skipped, w.NoopMessage, d.Changed, d.Refreshed, d.Skipped)
		case !reflect.DeepEqual(done(w.Changes), d.Changes):
			t.Errorf("%s: noop says\n%+v\nthe run\n%+v", w.Ref(), w.Changes, d.Changes)
		}
		if d.Changed {
			changed++
		}
	}
	if changed == 0 {
		t.Error("the first run changed nothing")
	}
}

// done returns the changes of noop in the words of a run that made them.
func done(would []model.Change) []model.Change {
	var out []model.Change
	for _, c := range would {
		out = append(out, c.Done())
	}

	return out
}

// withoutState leaves out what muster keeps for itself.
func withoutState(tree hosttest.Tree) hosttest.Tree {
	out := maps.Clone(tree)
	maps.DeleteFunc(out, func(path string, _ hosttest.Item) bool {
		return path == "var/lib/muster" || strings.HasPrefix(path, "var/lib/muster/")
	})

	return out
}

// apply runs muster apply and returns the transactions. None may have failed.
func apply(t *testing.T, m *rigs.Machine, args ...string) []model.Transaction {
	t.Helper()
	result := m.Run(append([]string{"muster", "apply", "--json"}, args...)...)
	if result.Code != 0 {
		t.Fatalf("muster apply %s: exit code %d\n%s", strings.Join(args, " "), result.Code, result.Stderr)
	}
	out := transactions(t, result.Stdout)
	for _, tx := range out {
		if tx.Failed || tx.NotRun || len(tx.Errors) > 0 {
			t.Errorf("%s failed: %v", tx.Ref(), tx.Errors)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no transactions:\n%s", result.Stderr)
	}

	return out
}

// transactions reads what muster apply --json prints.
func transactions(t *testing.T, output string) []model.Transaction {
	t.Helper()
	var out []model.Transaction
	for line := range strings.Lines(output) {
		var tx model.Transaction
		if err := json.Unmarshal([]byte(line), &tx); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		out = append(out, tx)
	}

	return out
}
