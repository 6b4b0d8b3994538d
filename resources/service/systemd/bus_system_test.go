//go:build system

package systemd_test

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/resources/service"
	"github.com/musterfleet/muster/resources/service/systemd"
)

// TestBothWays reads every unit of a machine over D-Bus and with systemctl: all units that systemd has or
// could load, and the units of the zoo.
func TestBothWays(t *testing.T) {
	m := boot(t)
	script, zoo := zoo()
	m.sh(script + `
unit failed "" ExecStart=/bin/false; systemctl start failed || true
unit activating "" ExecStart=/bin/false Restart=always RestartSec=1h; systemctl start activating || true
unit reloads "" ExecStart='/bin/sleep infinity' ExecReload=/bin/true; systemctl start reloads
unit old ""; systemctl start old; mkdir $lib/old.service.d; printf '[Service]\nEnvironment=A=B\n' > $lib/old.service.d/x.conf
systemctl start old; printf '[Service]\nEnvironment=A=C\n' > $lib/old.service.d/x.conf
unit many@ "$install"; systemctl -q enable --now many@a many@b`)
	names := slices.Collect(maps.Keys(zoo))
	names = append(names, "failed", "activating", "reloads", "old", "many@a", "many@b", "many@c", "nosuch@x", strings.Repeat("x", 200))
	names = append(names, strings.Fields(m.sh(`systemctl list-units --all --plain --no-legend | cut -d' ' -f1; systemctl list-unit-files --no-legend | cut -d' ' -f1 | grep -v '@\.'`))...)
	names = slices.DeleteFunc(names, func(name string) bool { return strings.Contains(name, `\`) })
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) < 200 {
		t.Fatalf("there are only %d units", len(names))
	}
	// A look outside of a run: some are names of one unit.
	m.env.RunID = ""
	m.calls()
	byBus := systemd.NewByBus(m.Root(), m.LendSocket(privateSocket))
	got, gotErrs := byBus.StatusAll(t.Context(), m.env, names)
	if calls := m.calls(); slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, "systemctl show") }) {
		t.Errorf("over D-Bus it called %q", calls)
	}
	want, wantErrs := m.provider.StatusAll(t.Context(), m.env, names)
	for i, name := range names {
		if text(gotErrs[i]) != text(wantErrs[i]) || errors.Is(gotErrs[i], service.ErrNotFound) != errors.Is(wantErrs[i], service.ErrNotFound) {
			t.Errorf("%s: over D-Bus %v, with systemctl %v", name, gotErrs[i], wantErrs[i])
		}
		if got[i] != nil && want[i] != nil && got[i].Since.Sub(want[i].Since).Abs() < time.Second {
			got[i].Since = want[i].Since // the clocks were read twice
		}
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("%s: over D-Bus %+v, with systemctl %+v", name, got[i], want[i])
		}
	}
	t.Logf("%d units", len(names))
}

// text returns an error without repeated lines: systemd logs a mistake each time
// that it reads a unit.
func text(err error) string {
	if err == nil {
		return ""
	}

	return strings.Join(slices.Compact(strings.Split(err.Error(), "\n")), "\n")
}

// TestRefusedBus: systemctl is used if systemd refuses the caller, here an invisible one.
func TestRefusedBus(t *testing.T) {
	m := boot(t)
	m.calls()
	for name, p := range map[string]*systemd.Provider{"refused": systemd.New(m.Root()), "no socket": systemd.New(t.TempDir())} {
		if state, err := p.Status(t.Context(), m.env, "dbus"); err != nil || !state.Metadata.Running {
			t.Errorf("%s: %+v, %v", name, state, err)
		}
		if calls := m.calls(); len(calls) == 0 || !strings.HasPrefix(calls[0], "systemctl show") {
			t.Errorf("%s: it called %q", name, calls)
		}
	}
}
