package command

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestUnitOfGroup takes the unit of the system from the control groups of a process.
func TestUnitOfGroup(t *testing.T) {
	for groups, want := range map[string]string{
		"0::/system.slice/muster.service\n":                                                "muster.service",
		"0::/system.slice/muster.service/muster-12-1\n":                                    "muster.service",
		"0::/system.slice/system-muster.slice/muster@a.service\n":                          "muster@a.service",
		"12:cpu,cpuacct:/system.slice/a.service\n1:name=systemd:/system.slice/b.service\n": "b.service",
		"12:cpu,cpuacct:/system.slice/a.service\n":                                         "",
		"0::/system.slice/__x.service\n":                                                   "_x.service",
		"0::/user.slice/user-1.slice/user@1.service/app.slice/muster.service\n":            "user@1.service",
		"0::/user.slice/user-1.slice/session-2.scope\n":                                    "",
		"0::/\n": "", "": "", "oops": "",
	} {
		if got := unitOfGroup(groups); got != want {
			t.Errorf("%q is of %q, not %q", groups, got, want)
		}
	}
}

// TestWaitsFor knows the systemctl that waits for the stop of a unit.
func TestWaitsFor(t *testing.T) {
	for argv, want := range map[string]bool{
		"systemctl restart muster":                           true,
		"/usr/bin/systemctl stop muster.service":             true,
		"systemctl --system -q try-restart a.service muster": true,
		"systemctl reload-or-restart must*":                  true,
		"systemctl try-reload-or-restart muster.service":     true,
		"systemctl disable --now muster":                     true,
		"systemctl mask muster --now":                        true,
		"systemctl disable muster":                           false,
		"systemctl --user restart muster":                    false,
		"systemctl -H web02 restart muster":                  false,
		"systemctl --machine=c stop muster":                  false,
		"systemctl --no-block restart muster":                false,
		"systemctl restart muster --no-block":                false,
		"systemctl restart nginx":                            false,
		"systemctl reload muster":                            false,
		"systemctl start muster":                             false,
		"systemctl muster restart":                           false,
		"sh -c systemctl restart muster":                     false,
		"":                                                   false,
	} {
		if got := waitsFor(strings.Fields(argv), "muster.service"); got != want {
			t.Errorf("%q: %t", argv, got)
		}
	}
}

// TestEndWaiters ends only a systemctl that waits for the end of muster; the rest of its command continues.
func TestEndWaiters(t *testing.T) {
	dir := t.TempDir()
	// Its arguments are systemctl's, whatever it does.
	if err := os.Symlink("/bin/sh", filepath.Join(dir, "systemctl")); err != nil {
		t.Fatal(err)
	}
	const wait = " -c 'echo waiting; while :; do sleep 0.05; done' "
	for script, want := range map[string]string{
		"systemctl" + wait + "restart muster":                                                       "0",
		"systemctl" + wait + "restart muster.service; echo after":                                   "0 after",
		"systemctl" + wait + "stop muster; exit 4":                                                  "4",
		"systemctl" + wait + "start web & systemctl" + wait + "restart muster; kill -9 $!; echo $?": "0 0",
	} {
		t.Run(script, func(t *testing.T) {
			r := New(nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			begun := make(chan struct{}, 10)
			go func() {
				<-begun
				r.EndWaiters(ctx, "muster.service")
			}()
			result, err := r.Run(t.Context(), Command{
				Argv: []string{"/bin/sh", "-c", script}, Path: dir + ":" + os.Getenv("PATH"), EndGroup: true,
				OnLine: func(line string, _ bool) {
					if line == "waiting" {
						begun <- struct{}{}
					}
				},
			})
			said := strings.ReplaceAll(result.Stdout.String(), "waiting\n", "")
			if got := strings.TrimSpace(strings.Join([]string{strconv.Itoa(result.ExitCode), said}, " ")); err != nil || got != want || result.Killed {
				t.Errorf("%q, %v, killed %t, want %q", got, err, result.Killed, want)
			}
		})
	}
	// Without any it ends with its context, and without a unit at once.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	New(nil).EndWaiters(ctx, "muster.service")
	New(nil).EndWaiters(t.Context(), "")
}
