//go:build system

package file_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// TestSystemBackupOnAFullDisk: without room for the copy the file stays, and so do the older copies.
func TestSystemBackupOnAFullDisk(t *testing.T) {
	hosttest.NeedRoot(t)
	dir, small := t.TempDir(), hosttest.MountTmpfs(t, "size=256k", 0)
	env := testEnv(t, dir)
	env.Host = host.New(host.Options{StateDir: filepath.Join(small, "state"), Log: hosttest.Log(t)})
	withFile("x", "old", 0o644)(t, dir)
	first, err := replace(t, env, owned(t, "x", typetest.Properties{"content": strings.Repeat("x", 1<<20), "backup": true})(dir))
	check(t, err)
	_, err = replace(t, env, owned(t, "x", typetest.Properties{"content": "new", "backup": true})(dir))
	if err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("%v", err)
	}
	holds("x", strings.Repeat("x", 1<<20), 0o644)(t, dir)
	holds(filepath.Base(first), "old", 0o600)(t, filepath.Dir(first))
	if names, err := os.ReadDir(filepath.Dir(first)); err != nil || len(names) != 1 {
		t.Errorf("left are %v: %v", names, err)
	}
}

// TestSystemBackupOfAHugeFile: another user cannot fill the state directory.
func TestSystemBackupOfAHugeFile(t *testing.T) {
	hosttest.NeedRoot(t)
	home := hosttest.Foreign(t)
	withFile("x", "", 0o644)(t, home)
	hosttest.Give(t, home+"/x")
	check(t, os.Truncate(home+"/x", 1<<40))
	env := testEnv(t, home)
	p := typetest.Properties{"name": home + "/x", "owner": "54321", "group": "54321", "mode": "0644", "content": "new", "backup": true}
	if _, err := replace(t, env, p); err == nil || !strings.Contains(err.Error(), "file is too large") {
		t.Errorf("%v", err)
	}
	if st, err := os.Stat(home + "/x"); err != nil || st.Size() != 1<<40 {
		t.Errorf("the file was changed: %v", err)
	}
	delete(p, "backup")
	_, err := replace(t, env, p)
	check(t, err)
}
