//go:build system

package command_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestSystemRunInDirectoryOfStranger runs commands in what a link of another
// user names: in a directory of that user, and never in one of root.
func TestSystemRunInDirectoryOfStranger(t *testing.T) {
	hosttest.NeedRoot(t)
	home := hosttest.Foreign(t)
	base := filepath.Dir(home)
	hosttest.MakeTree(t, base, "etc/", "etc/f1", "stranger/own/", "stranger/own/f1", "stranger/app -> DIR/etc", "stranger/cur -> own")
	hosttest.Give(t, home+"/app", home+"/cur", home+"/own", home+"/own/f1")
	c := shell("rm -f f1; echo $PWD; pwd")
	c.Dir = home + "/app"
	_, err := hosttest.New(t).Run(t.Context(), c)
	if !errors.Is(err, paths.ErrUnsafe) || !strings.Contains(err.Error(), home+"/app is a link of user 54321") {
		t.Errorf("a link to a directory of root: %v", err)
	}
	if ahead := command.Check(c); ahead == nil || err == nil || ahead.Error() != err.Error() {
		t.Errorf("ahead it is %v", ahead)
	}
	if _, err := os.Stat(base + "/etc/f1"); err != nil {
		t.Error(err)
	}
	c.Dir = home + "/cur"
	if got := run(t, c).Stdout.String(); got != home+"/cur\n"+home+"/cur\n" {
		t.Errorf("in a directory of its owner: %q", got)
	}
	if _, err := os.Stat(home + "/own/f1"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it ran elsewhere: %v", err)
	}
}

// TestSystemRunInDirectoryWhileSwapped has the owner exchange the working
// directory with a link to one of root all the time.
func TestSystemRunInDirectoryWhileSwapped(t *testing.T) {
	hosttest.NeedRoot(t)
	home := hosttest.Foreign(t)
	base := filepath.Dir(home)
	hosttest.MakeTree(t, base, "etc/", "stranger/app/", "stranger/evil -> DIR/etc")
	hosttest.Give(t, home+"/app", home+"/evil")
	c := command.Command{Argv: []string{"/bin/sh", "-c", ": > made"}, Dir: home + "/app"}
	runner := hosttest.New(t)
	stop := hosttest.Swap(t, home+"/app", home+"/evil")
	var ran, refused int
	for tries := 0; tries < 5_000 && (tries < 300 || ran == 0 || refused == 0); tries++ {
		if _, err := runner.Run(t.Context(), c); err == nil {
			ran++
		} else {
			refused++
		}
	}
	if swaps := stop(); swaps == 0 || ran == 0 || refused == 0 {
		t.Errorf("no race: %d swaps, %d ran, %d refused", swaps, ran, refused)
	}
	if _, err := os.Stat(base + "/etc/made"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it ran in the directory of root: %v", err)
	}
}
