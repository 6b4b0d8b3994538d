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

// TestOwner gives a file to another user, and unmounts the file system that one is on.
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
