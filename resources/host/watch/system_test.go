//go:build system

package watch_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/rigs"
)

// TestRealUnit stops, starts, enables and changes a service of a real systemd by hand,
// also after systemd started itself again.
func TestRealUnit(t *testing.T) {
	m := rigs.Boot(t)
	sh := func(script string) {
		t.Helper()
		if r := m.Run("sh", "-ec", script); r.Code != 0 {
			t.Fatalf("%s: exit code %d\n%s%s", script, r.Code, r.Stdout, r.Stderr)
		}
	}
	sh(`cd /usr/lib/systemd/system
printf '[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\nAlias=app.service\n' > web.service
systemctl daemon-reload; systemctl -q enable --now web`)
	w := watch.NewAt(m.LendSocket("/run/systemd/private"))
	defer w.Close()
	web := arm(t, w, watch.Point{Kind: watch.Unit, Name: "web.service"})
	app := arm(t, w, watch.Point{Kind: watch.Unit, Name: "app.service"})
	for _, by := range []string{
		"systemctl stop web", "systemctl start web", "systemctl kill -s KILL web", "systemctl start web", "systemctl -q mask --runtime web",
		"systemctl -q unmask --runtime web", "systemctl daemon-reload",
	} {
		for _, o := range []*observer{web, app} {
			select {
			case <-o.woken:
			default:
			}
		}
		sh(by)
		web.waits(t, by)
		app.waits(t, by)
	}
	sh("systemctl daemon-reexec")
	web.waits(t, "systemd started itself again")
	for web.Err() != nil {
		web.waits(t, "it is reached again")
	}
	sh("systemctl stop web")
	web.waits(t, "a stop after that")
}

// TestOwner changes the owner of a file, and unmounts its file system.
func TestOwner(t *testing.T) {
	hosttest.NeedRoot(t)
	w, dir := newWatcher(t), t.TempDir()
	write(t, dir+"/f", "")
	o := arm(t, w, path(dir+"/f"))
	check(t, os.Chown(dir+"/f", hosttest.Stranger, hosttest.Stranger))
	o.waits(t, "another owner")
	mkdir(t, dir+"/m")
	check(t, unix.Mount("muster", dir+"/m", "tmpfs", 0, ""))
	mounted := arm(t, w, path(dir+"/m/f"))
	check(t, unix.Unmount(dir+"/m", 0))
	mounted.waits(t, "the file system is no longer mounted")
	pass(t, w, mounted)
	write(t, dir+"/m/f", "")
	mounted.waits(t, "what was below it")
}

// TestMounts mounts over, above and below the watched path: the kernel reports no event in these directories.
func TestMounts(t *testing.T) {
	hosttest.NeedRoot(t)
	w, dir := newWatcher(t), t.TempDir()
	mkdir(t, dir+"/many/d")
	mkdir(t, dir+"/tree/a/b")
	mkdir(t, dir+"/real/d")
	check(t, os.Symlink(dir+"/real", dir+"/link"))
	write(t, dir+"/many/d/f", "")
	write(t, dir+"/f", "")
	write(t, dir+"/g", "")
	above, file := arm(t, w, path(dir+"/many/d/f")), arm(t, w, path(dir+"/f"))
	tree := arm(t, w, watch.Point{Kind: watch.Tree, Name: dir + "/tree"})
	linked := arm(t, w, path(dir+"/link/d/f"))
	other := arm(t, w, path(dir+"/many"))
	mount := func(source, target, kind string, flags uintptr) {
		t.Helper()
		check(t, unix.Mount(source, target, kind, flags, ""))
		t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
	}
	pass(t, w, above, file, tree, linked, other)

	mount("muster", dir+"/many/d", "tmpfs", 0)
	above.waits(t, "a file system mounted over its directory")
	pass(t, w, above)
	write(t, dir+"/many/d/f", "")
	above.waits(t, "what is there now")
	mount(dir+"/g", dir+"/f", "", unix.MS_BIND)
	file.waits(t, "another file mounted over it")
	mount("muster", dir+"/tree/a/b", "tmpfs", 0)
	tree.waits(t, "a file system mounted below it")
	pass(t, w, tree)
	for write(t, dir+"/tree/a/b/f", ""); watch.Unsettled(w); {
		pass(t, w)
	}
	tree.waits(t, "what is there now")
	mount("muster", dir+"/real", "tmpfs", 0)
	linked.waits(t, "a file system mounted where the link leads")
	pass(t, w, above, file, tree, linked, other)

	// After the unmount all is as before.
	check(t, unix.Unmount(dir+"/many/d", unix.MNT_DETACH))
	above.waits(t, "no longer mounted")
	other.sleeps(t, w, "mounts elsewhere")
}
