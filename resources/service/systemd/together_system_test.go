//go:build system

package systemd_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/resources/service"
)

// TestTogether applies one action to many services with one systemctl, and reports the failed
// services.
func TestTogether(t *testing.T) {
	m := boot(t)
	m.sh(`
unit a "$install"; unit b "$install"; unit fails "$install" Type=oneshot ExecStart=/bin/false
unit masked "$install"; systemctl -q mask masked
systemctl daemon-reload`)
	all := func(ctx context.Context, action service.Action, names ...string) string {
		t.Helper()
		var failed []string
		for i, err := range m.provider.ChangeAll(ctx, m.env, action, names) {
			if err != nil {
				failed = append(failed, names[i])
				if !strings.Contains(err.Error(), "systemctl "+string(action)) {
					t.Errorf("%s: %v", names[i], err)
				}
			}
		}
		return strings.Join(failed, " ")
	}
	calls := func() []string {
		return slices.DeleteFunc(m.calls(), func(c string) bool {
			return strings.HasPrefix(c, "systemctl show") || strings.HasPrefix(c, "systemctl is-enabled") || strings.HasPrefix(c, "systemctl daemon-reload")
		})
	}
	for _, c := range []struct {
		action service.Action
		names  string
		failed string
		active string
	}{
		{service.Start, "a b", "", "active active inactive"},
		{service.Stop, "a b", "", "inactive inactive inactive"},
		{service.Start, "a fails absent masked b", "fails absent masked", "active active failed"},
		{service.Restart, "a fails absent b", "fails absent", "active active failed"},
		{service.Enable, "a b", "", "active active failed"},
		// systemctl enables all of them or none.
		{service.Enable, "fails masked", "fails masked", "active active failed"},
		{service.Disable, "a b", "", "active active failed"},
		{service.Stop, "a absent b", "absent", "inactive inactive failed"},
	} {
		m.calls()
		if got := all(t.Context(), c.action, strings.Fields(c.names)...); got != c.failed {
			t.Errorf("%s %s failed for %q, not %q", c.action, c.names, got, c.failed)
		}
		if got, want := calls(), []string{"systemctl " + string(c.action) + " --system " + c.names}; !slices.Equal(got, want) {
			t.Errorf("%s %s: the calls are %q", c.action, c.names, got)
		}
		if got := strings.ReplaceAll(m.sh("systemctl is-active a b fails || true"), "\n", " "); got != c.active {
			t.Errorf("%s %s: they are %q, not %q", c.action, c.names, got, c.active)
		}
	}
}

// TestRestartedTogether distinguishes restarted services from services that only run.
func TestRestartedTogether(t *testing.T) {
	m := boot(t)
	m.sh(`
unit a ""; unit b ""
unit hangs "" Type=oneshot RemainAfterExit=yes ExecStart='/bin/sh -c "[ ! -e /root/broken ] || exec sleep infinity"'
systemctl daemon-reload; systemctl start a b hangs; touch /root/broken
printf '[Unit]\nRefuseManualStart=yes\n' >> $lib/b.service; systemctl daemon-reload`)
	pids := func() string { return m.sh("systemctl show -p MainPID --value a b") }
	before := pids()
	errs := m.provider.ChangeAll(t.Context(), m.env, service.Restart, []string{"a", "b"})
	after := pids()
	if errs[0] != nil || errs[1] == nil {
		t.Errorf("the errors are %v", errs)
	}
	if got := m.sh("systemctl is-active b"); got != "active" || before == after || strings.Split(before, "\n\n")[1] != strings.Split(after, "\n\n")[1] {
		t.Errorf("b is %s, the processes were %q and are %q", got, before, after)
	}
	// The finished part of an interrupted change counts.
	ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, errors.New("timed out after 2s"))
	defer cancel()
	errs = m.provider.ChangeAll(ctx, m.env, service.Restart, []string{"a", "hangs"})
	if errs[0] != nil || errs[1] == nil || !strings.Contains(errs[1].Error(), "timed out after 2s") {
		t.Errorf("the errors are %v", errs)
	}
	m.sh("systemctl stop hangs")
}
