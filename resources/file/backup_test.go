package file_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/file"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

func TestContractOfBackups(t *testing.T) {
	backed := owned(t, "x", typetest.Properties{"content": "new\n", "backup": true})
	cases := []typetest.Case{
		{Name: "backup, absent", Properties: backed, Message: "Would have created the file", Check: holds("x", "new\n", 0o644)},
		{Name: "backup, the same", Setup: withFile("x", "new\n", 0o644), Properties: backed},
		{Name: "backup, other mode", Setup: withFile("x", "new\n", 0o600), Properties: backed, Message: "Would have updated the file", Check: holds("x", "new\n", 0o644)},
		{Name: "backup, other content", Setup: withFile("x", "old\n", 0o644), Properties: backed, Message: "Would have updated the file (the old one is kept)", Check: holds("x", "new\n", 0o644)},
		{
			Name: "backup, validated", Setup: withFile("x", "old\n", 0o644), Message: "Would have updated the file (the old one is kept), validated first", Check: holds("x", "new\n", 0o644),
			Properties: owned(t, "x", typetest.Properties{"content": "new\n", "backup": true, "validate": "grep -q new {}"}),
		},
		{Name: "backup, link", Setup: all(withFile("f", "kept", 0o644), withLink("x", "f")), Properties: backed, Message: "Would have replaced the symbolic link with the file", Check: holds("f", "kept", 0o644)},
		{Name: "backup, removed", Setup: withFile("x", "old\n", 0o644), Properties: absent("x", typetest.Properties{"backup": true}), Message: "Would have removed the file (the old one is kept)", Check: isGone("x")},
		{Name: "backup, removed already", Properties: absent("x", typetest.Properties{"backup": true})},
		{Name: "backup, empty directory", Setup: withDir("x", 0o755), Properties: absent("x", typetest.Properties{"backup": true}), Message: "Would have removed the directory", Check: isGone("x")},
	}
	typetest.Run(t, typetest.Config{Type: fileType(), ReadOnly: typetest.Only("getent "), Cases: cases})
}

// replace applies a file with backup, and returns the path of the copy that the plan names.
func replace(t *testing.T, env resource.Env, p typetest.Properties) (string, error) {
	t.Helper()
	spec := specOf(t, p)
	plan, err := (file.Type{}).Plan(spec, stateOf(t, env, spec), false)
	if err != nil {
		return "", err
	}
	kept := ""
	for _, c := range plan.Changes {
		if c.Property == "backup" {
			kept = c.To
		}
	}
	_, err = (file.Type{}).Apply(t.Context(), env, file.Posix{}, spec, plan)

	return kept, err
}

// TestBackupsAreTheLastThree replaces a file several times: by new contents, and by an earlier content.
func TestBackupsAreTheLastThree(t *testing.T) {
	dir := t.TempDir()
	env := testEnv(t, dir)
	withFile("x", "0", 0o644)(t, dir)
	began := time.Now().Add(-time.Hour)
	var kept []string
	for i := range 5 {
		check(t, os.Chtimes(dir+"/x", began, began.Add(time.Duration(i)*time.Minute)))
		to, err := replace(t, env, owned(t, "x", typetest.Properties{"content": fmt.Sprint(i + 1), "backup": true})(dir))
		check(t, err)
		kept = append(kept, to)
	}
	root := filepath.Join(env.Host.StateDir(), "backups")
	isDir("backups", 0o700)(t, env.Host.StateDir())
	copies := func() (out string) {
		names, err := filepath.Glob(filepath.Join(root, dir, "x", "*"))
		check(t, err)
		for _, name := range names {
			content, err := os.ReadFile(name)
			check(t, err)
			out += string(content)
		}
		return out
	}
	if got := copies(); got != "234" || kept[4] != filepath.Join(root, dir, "x", began.Add(4*time.Minute).UTC().Format("2006-01-02T15-04-05.000000000Z")) {
		t.Errorf("the copies are %q, the last is %s", got, kept[4])
	}
	holds(filepath.Base(kept[4]), "4", 0o600)(t, filepath.Dir(kept[4]))
	// Another program restores an old content again and again.
	for i := range 4 {
		check(t, os.WriteFile(dir+"/x", []byte("3"), 0o644))
		check(t, os.Chtimes(dir+"/x", began, began.Add(time.Duration(10+i)*time.Minute)))
		_, err := replace(t, env, owned(t, "x", typetest.Properties{"content": "5", "backup": true})(dir))
		check(t, err)
	}
	if got := copies(); got != "243" {
		t.Errorf("the copies are %q", got)
	}
}

// TestNoCopyNoChange makes copies impossible: the file stays.
func TestNoCopyNoChange(t *testing.T) {
	for _, p := range []typetest.Properties{{"content": "new"}, {"ensure": "absent"}} {
		dir := t.TempDir()
		env := testEnv(t, dir)
		withFile("x", "old", 0o644)(t, dir)
		withFile("backups", "", 0o600)(t, env.Host.StateDir())
		p["backup"] = true
		_, err := replace(t, env, owned(t, "x", p)(dir))
		if err == nil || !strings.HasPrefix(err.Error(), "could not keep the old file, so it is not changed: ") {
			t.Errorf("%v: %v", p, err)
		}
		holds("x", "old", 0o644)(t, dir)

		env.Host = host.New(host.Options{Log: hosttest.Log(t)})
		if _, err := replace(t, env, owned(t, "x", p)(dir)); !errors.Is(err, state.ErrNone) {
			t.Errorf("without a state directory: %v", err)
		}
	}
}

func TestValidateBackup(t *testing.T) {
	for problem, p := range map[string]typetest.Properties{
		"a directory has no `backup`":                          {"ensure": "directory"},
		"`backup` requires managed content":                    {},
		"`backup` keeps no directories, which `force` removes": {"ensure": "absent", "force": true},
	} {
		p["backup"] = true
		_, problems := resource.Decode(fileType(), typetest.Value(base(p)), model.Position{})
		if len(problems) != 1 || !strings.Contains(problems[0].Error(), problem) {
			t.Errorf("%v, not %s", problems, problem)
		}
	}
}
