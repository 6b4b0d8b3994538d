//go:build system

package systemd_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/service"
)

// TestFailures have the last lines of the log.
func TestFailures(t *testing.T) {
	m := boot(t)
	m.sh(`
unit fails "" Type=oneshot ExecStart='/bin/sh -c "echo the port is taken; exit 7"'
unit ends "" Type=oneshot ExecStart='/bin/sh -c "echo nothing to do"'
unit hangs "" Type=oneshot ExecStart='/bin/sh -c "echo waiting for the disk; exec sleep infinity"'
unit missing "" ExecStart=/no/such/program Type=exec
unit masked ""; systemctl -q mask masked`)
	start := func(ctx context.Context, name string) error {
		return m.provider.Change(ctx, m.env, service.Start, name)
	}
	for name, want := range map[string][]string{
		"fails":   {"systemctl start --system fails: exit code 1", "Job for fails.service failed", "the port is taken", "status=7"},
		"ends":    {"desired state not achieved: ends is inactive after systemctl start", "nothing to do"},
		"missing": {"systemctl start --system missing: exit code 1", "/no/such/program"},
		"masked":  {"exit code 1: Failed to start masked.service: Unit masked.service is masked."},
		"absent":  {"Unit absent.service not found"},
	} {
		err := start(t.Context(), name)
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, without %q", name, err, part)
			}
		}
		var said resource.CommandError
		if !errors.As(err, &said) || strings.Contains(resource.WithoutOutput(err), "taken") {
			t.Errorf("%s: what was said is not told apart: %v", name, err)
		}
	}
	if err := m.provider.Change(t.Context(), m.env, service.Restart, "fails"); err == nil || !strings.Contains(err.Error(), "the port is taken") {
		t.Errorf("a restart that fails: %v", err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, errors.New("timed out after 2s"))
	defer cancel()
	err := start(ctx, "hangs")
	for _, part := range []string{"timed out after 2s", "waiting for the disk"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("hangs: %v, without %q", err, part)
		}
	}
	m.sh("systemctl stop hangs")
	for _, err := range []error{
		m.provider.Change(t.Context(), m.env, service.Stop, "absent"),
		m.provider.Change(t.Context(), m.env, service.Enable, "masked"),
		m.provider.Change(t.Context(), m.env, service.Disable, "absent"),
	} {
		if err == nil || !strings.Contains(err.Error(), "exit code ") {
			t.Errorf("the error is %v", err)
		}
	}
}

// TestLastLines checks that an error has the last lines of a service with much output, and no lines from
// before the start.
func TestLastLines(t *testing.T) {
	m := boot(t)
	m.sh(`
cat > /root/says <<'X'
#!/bin/sh
run=$(cat /root/run); echo $((run + 1)) > /root/run
if [ $run = 1 ]; then i=1; while [ $i -lt 40 ]; do echo "run $run, line $i"; i=$((i + 1)); done; fi
printf "run $run is \033[1mbold\n"; echo "run $run says goodbye"; exit 7
X
chmod +x /root/says; echo 1 > /root/run
unit says "" Type=oneshot ExecStart=/root/says`)
	lines := func(err error) []string {
		t.Helper()
		var said resource.CommandError
		if !errors.As(err, &said) {
			t.Fatalf("nothing was said: %v", err)
		}
		var out []string
		for line := range strings.Lines(said.Output) {
			if strings.HasPrefix(line, "run ") {
				out = append(out, strings.TrimSuffix(line, "\n"))
			}
		}
		return out
	}
	got := lines(m.provider.Change(t.Context(), m.env, service.Start, "says"))
	if len(got) < 3 || len(got) > 10 || !slices.Equal(got[len(got)-3:], []string{"run 1, line 39", "run 1 is \x1b[1mbold", "run 1 says goodbye"}) {
		t.Errorf("the first run said %q", got)
	}
	if got := lines(m.provider.Change(t.Context(), m.env, service.Start, "says")); !slices.Equal(got, []string{"run 2 is \x1b[1mbold", "run 2 says goodbye"}) {
		t.Errorf("the second run said %q", got)
	}
}

// TestBootIsIndependent has services enabled and disabled that do not come up,
// for whatever reason, alone and together.
func TestBootIsIndependent(t *testing.T) {
	m := boot(t)
	m.sh(`for k in 1 2 3 4; do
unit fails$k "$install" ExecStart=/no/such/program Type=exec
unit hangs$k "$install" Type=oneshot ExecStart='/bin/sh -c "echo waiting for the disk; exec sleep infinity"'
done; systemctl daemon-reload; systemctl -q enable fails2 hangs2 fails4 hangs4`)
	typ := serviceType(m)
	plan := func(boot service.Action) resource.Plan {
		return resource.Plan{Changes: []model.Change{{Action: "start"}, {Action: string(boot)}}}
	}
	specs, plans := []resource.Spec{}, []resource.Plan{}
	for _, name := range []string{"fails1", "fails2", "hangs1", "hangs2", "fails3", "fails4", "hangs3", "hangs4"} {
		boot := service.Enable
		if strings.ContainsAny(name, "24") {
			boot = service.Disable
		}
		specs, plans = append(specs, &service.Spec{Common: model.Common{Name: name}}), append(plans, plan(boot))
	}
	timed := func() (context.Context, context.CancelFunc) {
		return context.WithTimeoutCause(t.Context(), 2*time.Second, errors.New("timed out after 2s"))
	}
	check := func(name string, err error) {
		t.Helper()
		want := map[bool]string{true: "/no/such/program", false: "timed out after 2s"}[strings.HasPrefix(name, "fails")]
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "able --system") {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.HasPrefix(name, "fails") && !strings.Contains(err.Error(), "waiting for the disk") {
			t.Errorf("%s has no log: %v", name, err)
		}
	}
	for i := range 4 {
		ctx, cancel := timed()
		_, err := typ.Apply(ctx, m.env, m.provider, specs[i], plans[i])
		cancel()
		check(specs[i].Meta().Name, err)
	}
	ctx, cancel := timed()
	defer cancel()
	_, err := typ.ApplyAll(ctx, m.env, m.provider, specs[6:], plans[6:])
	var failed resource.BatchError
	if !errors.As(err, &failed) || len(failed) != 2 {
		t.Fatalf("together: %v", err)
	}
	for i, err := range failed {
		check(specs[6+i].Meta().Name, err)
		var timedOut resource.Concluded
		if !errors.As(err, &timedOut) {
			t.Errorf("it is not said that the time is used up: %v", err)
		}
	}
	if _, err = typ.ApplyAll(t.Context(), m.env, m.provider, specs[4:6], plans[4:6]); !errors.As(err, &failed) || errors.Join(failed[0]) == nil || errors.As(err, new(resource.Concluded)) {
		t.Fatalf("together: %v", err)
	}
	if got := m.sh("systemctl is-enabled fails1 hangs1 fails3 hangs3 fails2 hangs2 fails4 hangs4 || true; systemctl stop hangs1 hangs2 hangs3 hangs4"); got != strings.Repeat("enabled\n", 4)+strings.TrimSpace(strings.Repeat("disabled\n", 4)) {
		t.Errorf("they are %q", got)
	}
	// An interrupted change does not continue.
	broken, breakOff := context.WithCancelCause(t.Context())
	breakOff(errors.New("enough"))
	if _, err := typ.Apply(broken, m.env, m.provider, specs[1], plan(service.Enable)); err == nil || m.sh("systemctl is-enabled fails2 || true") != "disabled" {
		t.Errorf("broken off: %v", err)
	}
}
