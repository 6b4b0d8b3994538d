//go:build system

package rigs_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/rigs"
)

func TestMachineShowsEveryChange(t *testing.T) {
	m := rigs.New(t)
	before := m.Changes()
	if r := m.Run("sh", "-c", "cat /etc/os-release /etc/passwd > /dev/null; ls -lR /etc > /dev/null"); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	if diff := hosttest.SnapshotDiff(before, m.Changes()); len(diff) > 0 {
		t.Errorf("reading is shown as a change: %q", diff)
	}
	if r := m.Run("sh", "-c", "echo x > /root/new; touch /etc/hostname; chmod 600 /etc/passwd; rm /etc/issue"); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	diff := hosttest.SnapshotDiff(before, m.Changes())
	for _, path := range []string{"root/new", "etc/hostname", "etc/passwd", "etc/issue"} {
		if !slices.Contains(diff, path+": added") {
			t.Errorf("nothing reports %s: %q", path, diff)
		}
	}
}

func TestMachinesAreApart(t *testing.T) {
	one, other := rigs.New(t), rigs.New(t)
	if r := one.Run("sh", "-c", "echo x > /root/new"); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	if r := other.Run("cat", "/root/new"); r.Code == 0 {
		t.Error("a file of one machine is on the other")
	}
	// The settings of the kernel are everybody's, so no machine may write them.
	if r := one.Run("sh", "-c", "cat /proc/sys/vm/swappiness > /proc/sys/vm/swappiness"); r.Code == 0 {
		t.Error("a machine may set what belongs to the kernel")
	}
	r := one.Run("cat", "/proc/self/net/dev")
	if interfaces := strings.Count(r.Stdout, ":"); interfaces != 1 {
		t.Errorf("there are %d network interfaces, only lo is wanted:\n%s", interfaces, r.Stdout)
	}
}
