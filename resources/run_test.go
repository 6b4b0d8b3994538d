package resources_test

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// run reconciles the resources of a directory and returns the result of each, one
// line a resource, with the directory written DIR.
func run(t *testing.T, dir string, noop bool) string {
	t.Helper()
	user, group := hosttest.Owner(t)
	owned := func(name string, more typetest.Properties) typetest.Properties {
		p := typetest.Properties{"name": filepath.Join(dir, name), "owner": user, "group": group, "mode": "0644"}
		for key, value := range more {
			p[key] = value
		}
		return p
	}
	types := resources.All()
	var all []*resource.Resource
	add := func(name string, p typetest.Properties) {
		typ, _ := types.Get(name)
		r, problems := resource.Decode(typ, typetest.Value(p), model.Position{})
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	add("file", owned("app/tool", typetest.Properties{"content": "#!/bin/sh\nexit 0\n", "mode": "0755"}))
	add("file", owned("app/conf", typetest.Properties{"content": "a=1\n"}))
	add("exec", typetest.Properties{"name": "check", "command": "touch checked", "cwd": dir, "creates": dir + "/checked", "onlyif": dir + "/app/tool"})
	add("exec", typetest.Properties{"name": "reload", "command": "echo reloaded >> log", "provider": "shell", "cwd": dir + "/app", "refresh_only": true, "subscribe": []string{"file#" + dir + "/app/conf"}})
	add("file", owned("app", typetest.Properties{"ensure": "directory", "mode": "0755"}))
	add("file", typetest.Properties{"name": dir + "/old", "ensure": "absent"})
	add("file", typetest.Properties{"name": dir + "/old/conf", "ensure": "absent"})
	return reconcileAll(t, dir, all, noop)
}

// reconcileAll runs resources. It returns one line for each, with DIR for the directory.
func reconcileAll(t *testing.T, dir string, all []*resource.Resource, noop bool) string {
	t.Helper()
	graph, err := plan.Build(all, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	_, err = engine.Reconcile(t.Context(), graph, engine.ReconcileOptions{Options: engine.Options{
		Env: resource.Env{Host: hosttest.New(t), Log: hosttest.Log(t), Scope: resource.Scope{Noop: noop, Dir: dir}},
		OnTransaction: func(tx *model.Transaction) {
			line := tx.Ref().String() + " " + string(tx.Outcome())
			for _, word := range append([]string{cmp.Or(tx.NoopMessage, tx.SkipReason)}, tx.Errors...) {
				if word != "" {
					line += ": " + word
				}
			}
			out.WriteString(strings.ReplaceAll(line, dir, "DIR") + "\n")
		},
	}})
	if err != nil {
		t.Fatal(err)
	}

	return out.String()
}

// TestRun takes both types through the engine: noop says what the run then
// does and touches nothing, and the run after that finds nothing to do.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "old"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "old", "conf"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	before := hosttest.Snapshot(t, dir)
	expect(t, run(t, dir, true), `file#DIR/app noop: Would have created directory
file#DIR/app/tool noop: Would have created the file
file#DIR/app/conf noop: Would have created the file
exec#check skipped: unknown until file#DIR/app/tool is applied
exec#reload noop: Would have executed via subscribe
file#DIR/old/conf noop: Would have removed the file
file#DIR/old skipped: unknown until file#DIR/old/conf is applied
`)
	if changes := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, dir)); len(changes) > 0 {
		t.Errorf("noop changed %v", changes)
	}
	expect(t, run(t, dir, false), `file#DIR/app changed
file#DIR/app/tool changed
file#DIR/app/conf changed
exec#check changed
exec#reload refreshed
file#DIR/old/conf changed
file#DIR/old changed
`)
	after := hosttest.Snapshot(t, dir)
	if got := run(t, dir, false); strings.Count(got, " stable\n") != 7 {
		t.Errorf("the second run was\n%s", got)
	}
	if changes := hosttest.SnapshotDiff(after, hosttest.Snapshot(t, dir)); len(changes) > 0 {
		t.Errorf("the second run changed %v", changes)
	}
	if log, err := os.ReadFile(filepath.Join(dir, "app", "log")); err != nil || string(log) != "reloaded\n" {
		t.Errorf("reload wrote %q, %v", log, err)
	}
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%snot\n%s", got, want)
	}
}
