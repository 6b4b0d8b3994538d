//go:build system

package rigs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterfleet/muster/testing/rigs"
)

func TestBootedMachine(t *testing.T) {
	m := rigs.Boot(t)
	for command, want := range map[string]string{
		"cat /proc/1/comm":            "systemd",
		"systemctl is-system-running": "running",
		"systemd-detect-virt":         "systemd-nspawn",
		"ls /sys/class/net":           "lo",
		"systemctl is-active dbus":    "active",
		"journalctl -q --output=cat | grep -o 'Reached target.*Multi-User System'": "Multi-User System",
	} {
		if r := m.Run("sh", "-c", command); !strings.HasSuffix(strings.TrimSpace(r.Stdout), want) {
			t.Errorf("%s gives %+v, not %q", command, r, want)
		}
	}
}

// TestPowersOffWhateverBecomesOfTheTest runs itself as a test that boots a
// machine and then ends badly.
func TestPowersOffWhateverBecomesOfTheTest(t *testing.T) {
	const variable = "RIGS_TEST_ENDS_BY"
	switch os.Getenv(variable) {
	case "panic":
		rigs.Boot(t)
		panic("the end")
	case "fatal":
		rigs.Boot(t)
		t.Fatal("the end")
	case "kill":
		rigs.Boot(t)
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	for _, end := range []string{"panic", "fatal", "kill"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+strings.TrimSuffix(t.Name(), "/"+end)+"$")
			cmd.Env = append(os.Environ(), variable+"="+end)
			out, err := cmd.CombinedOutput()
			if err == nil || (end != "kill" && !strings.Contains(string(out), "the end")) {
				t.Fatalf("it ended with %v:\n%s", err, out)
			}
			// The cgroups go last, when there are no processes in them any more.
			ticks := time.NewTicker(20 * time.Millisecond)
			defer ticks.Stop()
			for deadline := time.After(time.Minute); ; {
				var left []string
				for _, dir := range []string{"", "*/"} {
					found, err := filepath.Glob(fmt.Sprintf("/sys/fs/cgroup/%smuster-%d-*", dir, cmd.Process.Pid))
					if err != nil {
						t.Fatal(err)
					}
					left = append(left, found...)
				}
				if len(left) == 0 {
					return
				}
				select {
				case <-ticks.C:
				case <-deadline:
					t.Fatalf("a machine is left over: %q", left)
				}
			}
		})
	}
}
