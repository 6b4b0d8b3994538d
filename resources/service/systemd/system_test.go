//go:build system

package systemd_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/service"
	"github.com/musterfleet/muster/resources/service/systemd"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/rigs"
	"github.com/musterfleet/muster/testing/typetest"
)

// prelude are functions for the scripts of this test.
const prelude = `set -e
lib=/usr/lib/systemd/system etc=/etc/systemd/system
install="[Install]
WantedBy=multi-user.target"
# unit NAME INSTALL [SERVICE…]: a unit, by default one that just runs
unit() { n=$1 i=$2; shift 2; [ $# -gt 0 ] || set -- ExecStart='/bin/sleep infinity'
  { echo '[Service]'; for l; do echo "$l"; done; echo "$i"; } > $lib/$n.service; }
`

// privateSocket is where systemd answers over D-Bus.
const privateSocket = "/run/systemd/private"

// machine is a booted machine. This process uses its systemctl and journalctl, and reads units with
// systemctl.
type machine struct {
	*rigs.Machine
	t        testing.TB
	provider *systemd.Provider
	env      resource.Env
	calls    func() []string
}

func boot(t *testing.T) *machine {
	t.Helper()
	m := rigs.Boot(t)

	return &machine{
		Machine: m, t: t, provider: systemd.NewBySystemctl(m.Root()), calls: m.Lend("systemctl", "journalctl"),
		env: resource.Env{Host: hosttest.New(t), Log: hosttest.Log(t), RunID: "a run"},
	}
}

// readsOverBus has units read over D-Bus.
func (m *machine) readsOverBus() {
	m.provider = systemd.NewByBus(m.Root(), m.LendSocket(privateSocket))
}

// sh runs a script in the machine.
func (m *machine) sh(script string) string {
	m.t.Helper()
	r := m.Run("sh", "-c", prelude+script)
	if r.Code != 0 {
		m.t.Fatalf("%s: exit code %d\n%s%s", script, r.Code, r.Stdout, r.Stderr)
	}

	return strings.TrimSpace(r.Stdout)
}

func serviceType(m *machine) *resource.Type { return service.New(m.provider) }

// zoo is a unit of every kind, with the answer that is-enabled has for it.
func zoo() (script string, enabled map[string]string) {
	return `
unit enabled "$install"; unit runtime "$install"; unit static ""; unit disabled "$install"; unit indirect "[Install]
Also=enabled.service"; unit masked "$install"; unit maskedruntime "$install"; unit bad ""; echo '[oops' > $lib/bad.service
unit install "[Install]
Alias=alias.service"; unit plus '' ; mv $lib/plus.service "$lib/c\x2b\x2b.service"
ln -s disabled.service $lib/staticalias.service
unit unlinked "$install"; unit handmade "$install"; unit handmasked "$install"; unit unmasked "$install"; unit unaliased "[Install]
Alias=gonealias.service"
for n in linked linkedruntime; do unit $n "$install"; mv $lib/$n.service /opt; done
mkdir -p /etc/systemd/system-generators
printf '#!/bin/sh\nprintf "[Service]\\nExecStart=/bin/sleep infinity\\n" > $1/generated.service\n' > /etc/systemd/system-generators/test
chmod +x /etc/systemd/system-generators/test
for n in sysvon sysvoff; do
  printf '#!/bin/sh\n### BEGIN INIT INFO\n# Provides: %s\n# Default-Start: 2 3 4 5\n# Default-Stop: 0 1 6\n### END INIT INFO\n' $n > /etc/init.d/$n
  chmod +x /etc/init.d/$n
done
systemctl daemon-reload
systemctl -q enable enabled install unlinked unaliased sysvon
systemctl -q disable sysvoff
systemctl -q enable --runtime runtime
systemctl -q mask masked unmasked; systemctl -q mask --runtime maskedruntime
systemctl -q link /opt/linked.service; systemctl -q link --runtime /opt/linkedruntime.service
systemd-run -q --unit=transient sleep infinity
# What is active is kept in memory, so that systemd does not notice what is done by hand.
systemctl start unlinked handmade handmasked unaliased
systemctl show gonealias.service > /dev/null
rm $etc/multi-user.target.wants/unlinked.service $etc/unmasked.service $etc/gonealias.service
ln -s $lib/handmade.service $etc/multi-user.target.wants/
ln -s /dev/null $etc/handmasked.service
# A script that came after systemd read what there is.
sed s/sysvon/sysvnew/ /etc/init.d/sysvon > /etc/init.d/sysvnew; chmod +x /etc/init.d/sysvnew
`, map[string]string{
			"enabled": "enabled", "runtime": "enabled-runtime", "static": "static", "disabled": "disabled", "indirect": "indirect",
			"masked": "masked", "maskedruntime": "masked-runtime", "alias": "enabled", "staticalias": "disabled", "linked": "linked",
			"linkedruntime": "linked-runtime", "generated": "generated", "transient": "transient", "absent": "not-found",
			"sysvon": "enabled", "sysvoff": "disabled", "sysvnew": "disabled", "c++": "static", "dbus.socket": "static", "enabled.service": "enabled",
			"unlinked": "disabled", "handmade": "enabled", "handmasked": "masked", "unmasked": "disabled", "gonealias": "not-found",
			"-.mount": "perpetual", "init.scope": "perpetual", "system.slice": "perpetual",
			"bad": "", "dbus": "static", "default.target": "static",
		}
}

// TestAnswers compares the answers that muster derives with the answers of is-active and is-enabled, for a
// unit of every kind.
func TestAnswers(t *testing.T) {
	t.Run("systemctl", func(t *testing.T) { testAnswers(t, boot(t), false) })
	t.Run("D-Bus", func(t *testing.T) {
		m := boot(t)
		m.readsOverBus()
		testAnswers(t, m, true)
	})
}

func testAnswers(t *testing.T, m *machine, overBus bool) {
	script, enabled := zoo()
	m.sh(script + `
unit failed "" ExecStart=/bin/false; systemctl start failed || true
unit activating "" ExecStart=/bin/false Restart=always RestartSec=1h; systemctl start activating || true
for u in failed activating; do until [ "$(systemctl is-active $u)" = $u ]; do sleep 0.05; done; done # both are active until false has ended
systemctl start enabled static`)
	active := map[string]string{"enabled": "active", "static": "active", "failed": "failed", "activating": "activating", "disabled": "inactive", "transient": "active"}
	enabled["failed"], enabled["activating"] = "static", "static"
	// The commands of the tables, as the tables have them.
	ask := func(verb, name string) string {
		return strings.TrimSpace(m.Run("systemctl", verb, "--system", "--", name).Stdout)
	}
	names := slices.Sorted(maps.Keys(enabled))
	// Every name is asked for, and some are of one unit.
	m.env.RunID = ""
	units := map[string]string{"alias": "install", "staticalias": "disabled", "default.target": "graphical.target"}
	m.calls()
	before := m.Changes()
	states, errs := m.provider.StatusAll(t.Context(), m.env, names)
	after := m.Changes()
	for path := range after {
		// The log of systemd continues.
		if strings.HasPrefix(path, "var/log/journal/") {
			after[path] = before[path]
		}
	}
	if diff := hosttest.SnapshotDiff(before, after); len(diff) > 0 {
		t.Errorf("looking changed the machine: %q", diff)
	}
	calls := m.calls()
	if !overBus {
		if !strings.HasPrefix(calls[0], "systemctl show --system --property=") {
			t.Errorf("looking called %q first", calls[0])
		}
		calls = calls[1:]
	}
	if slices.ContainsFunc(calls, func(c string) bool {
		return !strings.HasPrefix(c, "systemctl is-enabled --system ") && !strings.HasPrefix(c, "journalctl ")
	}) {
		t.Errorf("looking called %q", calls)
	}
	for i, name := range names {
		var got service.Metadata
		switch err := errs[i]; enabled[name] {
		case "":
			if err == nil || !strings.Contains(err.Error(), "its unit cannot be read") || !strings.Contains(err.Error(), "/lib/systemd/system/bad.service:1: Invalid section header") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		case "not-found":
			if !errors.Is(err, service.ErrNotFound) || ask("is-enabled", name) != "" {
				t.Errorf("%s: %v", name, err)
			}
			continue
		default:
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			got = states[i].Metadata
		}
		want := ask("is-enabled", cmp.Or(units[name], name))
		if enabled[name] == "perpetual" && want == "" {
			want = "perpetual" // systemctl has no answer
		}
		if got.UnitFile != want || want != enabled[name] {
			t.Errorf("%s: it is taken for %q, is-enabled says %q, the table of the test %q", name, got.UnitFile, want, enabled[name])
		}
		if want := ask("is-active", name); got.Active != want || cmp.Or(active[name], want) != want {
			t.Errorf("%s: it is taken for %q, is-active says %q, the table of the test %q", name, got.Active, want, active[name])
		}
		alone, err := m.provider.Status(t.Context(), m.env, name)
		if err != nil || alone.Metadata != states[i].Metadata {
			t.Errorf("%s alone is %+v, %v, together %+v", name, alone, err, states[i])
		}
	}
}

// TestAliasOfMaskedUnit names the remedy for an alias that systemd cannot read.
func TestAliasOfMaskedUnit(t *testing.T) {
	m := boot(t)
	m.sh(`unit real "[Install]
WantedBy=multi-user.target
Alias=other.service"; systemctl daemon-reload; systemctl -q enable --now real; systemctl -q mask real; systemctl daemon-reload; systemctl stop real; systemctl daemon-reload`)
	_, errs := m.provider.StatusAll(t.Context(), m.env, []string{"other"})
	const want = "other.service is an alias of real.service, which is masked: run systemctl unmask real.service, and name the service real.service"
	if fmt.Sprint(errs[0]) != want {
		t.Errorf("the error is %v", errs[0])
	}
}

// TestOneQuestion looks at 100 services with one process.
func TestOneQuestion(t *testing.T) {
	m := boot(t)
	m.sh(`for k in $(seq 0 99); do unit s$k "$install" Type=oneshot RemainAfterExit=yes ExecStart=/bin/true; names="$names s$k"; done
systemctl -q enable $names; systemctl start $names`)
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("s%d", i))
	}
	m.calls()
	states, errs := m.provider.StatusAll(t.Context(), m.env, names)
	if calls := m.calls(); len(calls) != 1 {
		t.Errorf("%d processes: %q", len(calls), calls)
	}
	for i := range names {
		if errs[i] != nil || states[i].Name != names[i] || !states[i].Metadata.Running || !states[i].Metadata.Enabled {
			t.Errorf("%s: %+v, %v", names[i], states[i], errs[i])
		}
	}
	// What systemd cannot even be asked about fails for itself.
	states, errs = m.provider.StatusAll(t.Context(), m.env, []string{"s1", strings.Repeat("x", 300), "s2"})
	if errs[0] != nil || errs[1] == nil || errs[2] != nil || !states[2].Metadata.Running {
		t.Errorf("%+v, %v", states, errs)
	}
}

// TestSettles looks again at what reloads or stops.
func TestSettles(t *testing.T) {
	m := boot(t)
	m.sh(`
unit stopping "" ExecStart='/bin/sleep infinity' ExecStop='/bin/sleep 1'
unit reloading "" ExecStart='/bin/sleep infinity' ExecReload='/bin/sleep 1'
unit stuck "" ExecStart='/bin/sleep infinity' ExecReload='/bin/sleep infinity'
systemctl start stopping reloading stuck
systemctl stop --no-block stopping; systemctl reload --no-block reloading stuck
for s in stopping:deactivating reloading:reloading stuck:reloading; do
  until [ "$(systemctl is-active ${s%:*})" = ${s#*:} ]; do :; done
done`)
	states, errs := m.provider.StatusAll(t.Context(), m.env, []string{"stopping", "reloading", "stuck", "dbus"})
	if errs[0] != nil || states[0].Ensure != "stopped" {
		t.Errorf("what was stopping is %+v, %v", states[0], errs[0])
	}
	if errs[1] != nil || states[1].Ensure != "running" {
		t.Errorf("what was reloading is %+v, %v", states[1], errs[1])
	}
	if errs[2] == nil || !strings.Contains(errs[2].Error(), "still reloading after 5s") {
		t.Errorf("what reloads without end is %+v, %v", states[2], errs[2])
	}
	if errs[3] != nil || states[3].Ensure != "running" {
		t.Errorf("what stands beside it is %+v, %v", states[3], errs[3])
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := m.provider.Status(ctx, m.env, "stuck"); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("a look that is broken off: %v", err)
	}
	m.sh("systemctl kill -s KILL stuck")
}

// TestReload is done before the first change of a run, and again when something came or went.
func TestReload(t *testing.T) {
	m := boot(t)
	m.sh(`unit web "$install"; systemctl start web`)
	reloads := func() int {
		n := 0
		for _, call := range m.calls() {
			if call == "systemctl daemon-reload --system" {
				n++
			}
		}
		return n
	}
	restart := func(run string) {
		t.Helper()
		m.env.RunID = run
		if err := m.provider.Change(t.Context(), m.env, service.Restart, "web"); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, want int) {
		t.Helper()
		if got := reloads(); got != want {
			t.Errorf("%s: %d reloads, not %d", what, got, want)
		}
	}
	if _, err := m.provider.Status(t.Context(), m.env, "web"); err != nil {
		t.Fatal(err)
	}
	check("a look", 0)
	restart("1")
	check("the first change of a run", 1)
	restart("1")
	check("the second", 0)
	restart("2")
	check("another run", 1)
	m.sh(`mkdir $etc/web.service.d; printf '[Service]\nEnvironment=A=B\n' > $etc/web.service.d/x.conf`)
	restart("2")
	check("the first drop-in of a unit", 1)
	if got := m.sh("systemctl show -p Environment --value web"); got != "A=B" {
		t.Errorf("the drop-in does not hold: %q", got)
	}
	m.sh(`sed -i s/A=B/A=C/ $etc/web.service.d/x.conf`)
	state, err := m.provider.Status(t.Context(), m.env, "web")
	if err != nil || !state.NeedsReload() {
		t.Errorf("a unit whose file changed is %+v, %v", state, err)
	}
	m.calls()
	if err := serviceType(m).Prepare(t.Context(), m.env, m.provider, nil); err != nil {
		t.Fatal(err)
	}
	check("Prepare", 1)
	restart("2")
	check("a change after it", 0)
	if state, err := m.provider.Status(t.Context(), m.env, "web"); err != nil || state.Outdated {
		t.Errorf("after it the unit is %+v, %v", state, err)
	}
	for _, action := range []service.Action{service.Enable, service.Disable} {
		if err := m.provider.Change(t.Context(), m.env, action, "web"); err != nil {
			t.Fatal(err)
		}
		restart("2")
	}
	check("own links", 0)
	restart("")
	restart("")
	check("changes outside of a run", 2)
	m.env.Part = true
	restart("3")
	restart("4")
	check("runs of a part", 0)
	m.sh(`printf '[Service]\nEnvironment=A=D\n' > $etc/web.service.d/y.conf`)
	restart("5")
	restart("6")
	check("runs of a part, the first after something came", 1)
	m.env.Part = false
	restart("6")
	check("a whole run", 1)
	m.sh(`printf '[Unit]\nStartLimitIntervalSec=1h\nStartLimitBurst=5\n' > $etc/web.service.d/limit.conf`)
	m.env.Part, m.provider = true, systemd.NewBySystemctl(m.Root())
	restart("7")
	restart("8")
	check("runs of a part, with none before", 1)
	for range 7 {
		restart("9")
	}
	check("often in runs of a part", 1)
}

// properties returns the properties of a service.
func properties(name, ensure string, enable any) typetest.Properties {
	p := typetest.Properties{"name": name, "ensure": ensure}
	if enable != nil {
		p["enable"] = enable
	}

	return p
}

// unitOfCase is how the units of the cases are named.
var unitOfCase = regexp.MustCompile(`\b[a-f][0-9]\b`)

// own gives a text with the names of units that no other case has: each is tried
// alone and together.
func own(t *testing.T, text string) string {
	if !strings.HasSuffix(t.Name(), "together") {
		return text
	}

	return unitOfCase.ReplaceAllString(text, "${0}t")
}

// TestContract takes services through the tables "Idempotency" and "Special
// Cases" on a real systemd.
func TestContract(t *testing.T) {
	m := boot(t)
	m.readsOverBus()
	at := t
	properties := func(name, ensure string, enable any) func(string) typetest.Properties {
		return func(string) typetest.Properties { return properties(own(at, name), ensure, enable) }
	}
	masked := func(name, ensure string, masked bool) func(string) typetest.Properties {
		return func(dir string) typetest.Properties {
			p := properties(name, ensure, nil)(dir)
			p["masked"] = masked
			return p
		}
	}
	setup := func(script string) func(*testing.T, string) {
		return func(t *testing.T, _ string) { m.t, at = t, t; m.sh(own(t, script)) }
	}
	is := func(name, active, enabled string) func(*testing.T, string) {
		return func(t *testing.T, _ string) {
			m.t = t
			if got := m.sh(own(t, "systemctl is-active "+name+" || true; systemctl is-enabled "+name+" || true")); got != active+"\n"+enabled {
				t.Errorf("it is %q", got)
			}
		}
	}
	cases := []typetest.Case{
		{Name: "running, running", Setup: setup(`unit a1 "$install"; systemctl start a1`), Properties: properties("a1", "running", nil), Check: is("a1", "active", "disabled")},
		{Name: "running, stopped", Setup: setup(`unit a2 "$install"`), Properties: properties("a2", "running", nil), Message: "Would have started", Check: is("a2", "active", "disabled")},
		{Name: "running, failed", Setup: setup(`unit a3 "" ExecStartPre='/bin/test -e /root/a3' ExecStart='/bin/sleep infinity'; systemctl start a3 || touch /root/a3`), Properties: properties("a3", "running", nil), Message: "Would have started", Check: is("a3", "active", "static")},
		{Name: "stopped, stopped", Setup: setup(`unit a4 "$install"`), Properties: properties("a4", "stopped", nil), Check: is("a4", "inactive", "disabled")},
		{Name: "stopped, running", Setup: setup(`unit a5 "$install"; systemctl start a5`), Properties: properties("a5", "stopped", nil), Message: "Would have stopped", Check: is("a5", "inactive", "disabled")},
		{Name: "stopped, restarted again and again", Setup: setup(`unit a6 "" ExecStart=/bin/false Restart=always RestartSec=1h; systemctl start a6; until [ "$(systemctl is-active a6)" = activating ]; do :; done`), Properties: properties("a6", "stopped", nil), Message: "Would have stopped", Check: is("a6", "inactive", "static")},
		{Name: "stopped, still starting", Setup: setup(`unit a7 "" Type=oneshot RemainAfterExit=yes ExecStart='/bin/sleep infinity'; systemctl start --no-block a7; until [ "$(systemctl is-active a7)" = activating ]; do :; done`), Properties: properties("a7", "stopped", nil), Message: "Would have stopped", Check: is("a7", "failed", "static")},
		{Name: "enable true, enabled", Setup: setup(`unit b1 "$install"; systemctl -q enable b1`), Properties: properties("b1", "stopped", true), Check: is("b1", "inactive", "enabled")},
		{Name: "enable true, disabled", Setup: setup(`unit b2 "$install"`), Properties: properties("b2", "stopped", true), Message: "Would have enabled", Check: is("b2", "inactive", "enabled")},
		{Name: "enable false, enabled", Setup: setup(`unit b3 "$install"; systemctl -q enable b3`), Properties: properties("b3", "stopped", false), Message: "Would have disabled", Check: is("b3", "inactive", "disabled")},
		{Name: "enable false, disabled", Setup: setup(`unit b4 "$install"`), Properties: properties("b4", "stopped", false), Check: is("b4", "inactive", "disabled")},
		{Name: "enable nil, enabled", Setup: setup(`unit b5 "$install"; systemctl -q enable b5`), Properties: properties("b5", "stopped", nil), Check: is("b5", "inactive", "enabled")},
		{Name: "enable true, linked", Setup: setup(`unit b6 "$install"; mv $lib/b6.service /opt; systemctl -q link /opt/b6.service`), Properties: properties("b6", "stopped", true), Message: "Would have enabled", Check: is("b6", "inactive", "enabled")},
		{Name: "enable false, until the next boot", Setup: setup(`unit b7 "$install"; systemctl -q enable --runtime b7`), Properties: properties("b7", "stopped", false), Message: "Would have disabled", Check: is("b7", "inactive", "disabled")},
		{Name: "enable false, the link is made by hand", Setup: setup(`unit b8 "$install"; systemctl start b8; ln -s $lib/b8.service $etc/multi-user.target.wants/`), Properties: properties("b8", "running", false), Message: "Would have disabled", Check: is("b8", "active", "disabled")},
		{Name: "enable false, a script", Setup: setup(`printf '#!/bin/sh\n### BEGIN INIT INFO\n# Provides: b9\n# Default-Start: 2 3 4 5\n# Default-Stop: 0 1 6\n### END INIT INFO\n' > /etc/init.d/b9; chmod +x /etc/init.d/b9; systemctl -q daemon-reload; systemctl -q enable b9`), Properties: properties("b9", "stopped", false), Message: "Would have disabled", Check: is("b9", "inactive", "disabled")},
		{Name: "enable false, linked", Setup: setup(`unit c3 "$install"; mv $lib/c3.service /opt; systemctl -q enable --now /opt/c3.service`), Properties: properties("c3", "running", false), Message: "Would have disabled", Check: is("c3", "active", "linked")},
		{Name: "enable false, linked by hand and by a relative path", Setup: setup(`unit c4 "$install"; mv $lib/c4.service /opt; ln -s ../../../opt/c4.service $etc/c4.service; systemctl daemon-reload; systemctl -q enable c4`), Properties: properties("c4", "stopped", false), Message: "Would have disabled", Check: is("c4", "inactive", "linked")},
		{Name: "enable false, linked until the next boot", Setup: setup(`unit c5 "$install"; mv $lib/c5.service /opt; systemctl -q enable --runtime /opt/c5.service`), Properties: properties("c5", "stopped", false), Message: "Would have disabled", Check: is("c5", "inactive", "linked-runtime")},
		{Name: "both", Setup: setup(`unit c1 "$install"`), Properties: properties("c1", "running", true), Message: "Would have started. Would have enabled", Check: is("c1", "active", "enabled")},
		{Name: "neither", Setup: setup(`unit c2 "$install"; systemctl -q enable --now c2`), Properties: properties("c2", "stopped", false), Message: "Would have stopped. Would have disabled", Check: is("c2", "inactive", "disabled")},
		{Name: "subscribe, ensure stopped", Setup: setup(`unit d1 ""`), Properties: properties("d1", "stopped", nil), Refresh: true, Check: is("d1", "inactive", "static")},
		{Name: "subscribe, not running", Setup: setup(`unit d2 ""`), Properties: properties("d2", "running", nil), Refresh: true, Message: "Would have started", Check: is("d2", "active", "static")},
		{Name: "an escaped name", Setup: setup(`unit x ""; mv $lib/x.service "$lib/e\x2b1.service"; systemctl stop e+1 || true`), Properties: properties("e+1", "running", nil), Message: "Would have started", Check: is("e+1", "active", "static")},
		{Name: "enable false, static", Setup: setup(`unit f1 ""`), Properties: properties("f1", "stopped", false), Error: "cannot be disabled: its unit is static"},
		{Name: "enable false, generated", Setup: setup(`mkdir -p /etc/systemd/system-generators; printf '#!/bin/sh\nprintf "[Service]\\nExecStart=/bin/sleep infinity\\n" > $1/f2.service\n' > /etc/systemd/system-generators/f2; chmod +x /etc/systemd/system-generators/f2; systemctl daemon-reload`), Properties: properties("f2", "stopped", false), Error: "cannot be disabled: its unit is generated"},
		{Name: "enable false, transient", Setup: setup(`systemd-run -q --unit=f7 sleep infinity`), Properties: properties("f7", "running", false), Error: "cannot be disabled: its unit is transient"},
		{Name: "enable false, indirect", Setup: setup(`unit f8x "$install"; unit f8 "[Install]
Also=f8x.service"`), Properties: properties("f8", "stopped", false), Error: "cannot be disabled: its unit is indirect"},
		{Name: "enable false, alias", Setup: setup(`unit f9 "$install"; ln -sf f9.service $lib/e9.service; systemctl -q enable f9`), Properties: properties("e9", "stopped", false), Message: "Would have disabled", Check: is("f9", "inactive", "disabled")},
		{Name: "running, alias", Setup: setup(`unit e7 "$install"; ln -sf e7.service $lib/e8.service`), Properties: properties("e8", "running", true), Message: "Would have started. Would have enabled", Check: is("e7", "active", "enabled")},
		{Name: "instance", Setup: setup(`unit d4@ "$install" ExecStart='/bin/sleep infinity'`), Properties: properties("d4@x", "running", true), Message: "Would have started. Would have enabled", Check: is("d4@x", "active", "enabled")},
		{Name: "instance, no more", Setup: setup(`unit d5@ "$install"; systemctl -q enable --now d5@x d5@y`), Properties: properties("d5@x.service", "stopped", false), Message: "Would have stopped. Would have disabled", Check: is("d5@x d5@y", "inactive\nactive", "disabled\nenabled")},
		{Name: "masked", Setup: setup(`unit d6 "$install"; systemctl -q enable --now d6`), Properties: masked("d6", "stopped", true), Message: "Would have stopped. Would have masked", Check: is("d6", "inactive", "masked")},
		{Name: "masked, it is", Setup: setup(`unit d7 "$install"; systemctl -q mask d7`), Properties: masked("d7", "stopped", true), Check: is("d7", "inactive", "masked")},
		{Name: "masked until the next boot", Setup: setup(`unit d8 "$install"; systemctl -q mask --runtime d8`), Properties: masked("d8", "stopped", true), Message: "Would have masked", Check: is("d8", "inactive", "masked")},
		{Name: "masked, not found", Setup: setup("true"), Properties: masked("d9", "stopped", true), Message: "Would have masked", Check: is("d9", "inactive", "masked")},
		{Name: "masked, alias", Setup: setup(`unit g1 "[Install]
WantedBy=multi-user.target
Alias=g2.service"; systemctl -q enable --now g1`), Properties: masked("g2", "stopped", true), Error: "cannot be masked: g2.service is an alias of g1.service"},
		{Name: "masked, it has an alias", Setup: setup(`rm -f $etc/g[34].service; unit g3 "[Install]
WantedBy=multi-user.target
Alias=g4.service"; systemctl -q enable --now g3`), Properties: masked("g3", "stopped", true), Message: "Would have stopped. Would have masked", Check: is("g3", "inactive", "masked")},
		{Name: "not masked", Setup: setup(`unit e1 "$install"; systemctl -q mask e1`), Properties: masked("e1", "running", false), Message: "Would have unmasked. Would have started", Check: is("e1", "active", "disabled")},
		{Name: "not masked, until the next boot", Setup: setup(`unit e2 "$install"; systemctl -q mask --runtime e2`), Properties: masked("e2", "stopped", false), Message: "Would have unmasked", Check: is("e2", "inactive", "disabled")},
		{Name: "enable true, masked", Setup: setup(`unit f3 "$install"; systemctl -q mask f3`), Properties: properties("f3", "stopped", true), Error: "cannot be enabled: its unit is masked: systemctl unmask"},
		{Name: "running, masked", Setup: setup(`unit f4 "$install"; systemctl -q mask --runtime f4`), Properties: properties("f4", "running", nil), Error: "cannot be started: its unit is masked: systemctl unmask --runtime"},
		{Name: "not found", Setup: setup("true"), Properties: properties("f5", "running", nil), Error: "service not found"},
		{Name: "not found, stopped", Setup: setup("true"), Properties: properties("f6", "stopped", nil), Error: "service not found"},
		{Name: "not found, stopped, enable true", Setup: setup("true"), Properties: properties("c6", "stopped", true), Error: "service not found"},
		{Name: "not found, running, enable false", Setup: setup("true"), Properties: properties("c7", "running", false), Error: "service not found"},
		{Name: "not found, neither", Setup: setup("true"), Properties: properties("c8", "stopped", false)},
	}
	asks := typetest.Only("systemctl show ", "systemctl is-enabled ")
	typetest.Run(t, typetest.Config{Type: serviceType(m), ReadOnly: asks, Cases: cases})

	m.refreshes(t)

	// A restart leaves the same state, so a lying provider must leave a stopped service.
	pid := ""
	typetest.Run(t, typetest.Config{
		Type: serviceType(m), ReadOnly: asks,
		Lie: func(before resource.State, outcome resource.Outcome) (resource.Outcome, resource.State) {
			state := *before.(*service.State)
			state.Metadata.Running, state.Ensure = false, service.EnsureStopped
			return outcome, &state
		},
		Cases: []typetest.Case{{
			Name: "subscribe, running", Refresh: true, Message: "Would have restarted", Properties: properties("d3", "running", nil),
			Setup: func(t *testing.T, _ string) {
				m.t, at = t, t
				pid = m.sh(own(t, `unit d3 ""; systemctl start d3; systemctl show -p MainPID --value d3`))
			},
			Check: func(t *testing.T, _ string) {
				m.t = t
				if now := m.sh(own(t, "systemctl show -p MainPID --value d3")); now == pid || now == "0" {
					t.Errorf("the process was %s and is %s", pid, now)
				}
			},
		}},
	})
}

// refreshes reloads units that can, and says what cannot be reloaded.
func (m *machine) refreshes(t *testing.T) {
	m.t = t
	m.sh(`
unit can "" ExecStart='/bin/sleep infinity' ExecReload='/bin/touch /root/reloaded'
unit cannot ""
unit fails "" ExecStart='/bin/sleep infinity' ExecReload=/bin/false
systemctl daemon-reload; systemctl start can cannot fails`)
	for _, c := range []struct {
		name, refresh, message, err string
		reloaded, restarted         bool
	}{
		{name: "can", refresh: "reload", message: "Would have reloaded", reloaded: true},
		{name: "can", refresh: "reload-or-restart", message: "Would have reloaded or restarted", reloaded: true},
		{name: "can", refresh: "restart", message: "Would have restarted", restarted: true},
		{name: "cannot", refresh: "reload-or-restart", message: "Would have reloaded or restarted", restarted: true},
		{name: "cannot", refresh: "reload", err: "cannot be reloaded: its unit has no ExecReload"},
		{name: "fails", refresh: "reload", message: "Would have reloaded", err: "systemctl reload --system fails: exit code 1"},
	} {
		m.sh("rm -f /root/reloaded")
		pid := m.sh("systemctl show -p MainPID --value " + c.name)
		r, problems := resource.Decode(serviceType(m), typetest.Value(typetest.Properties{"name": c.name, "refresh": c.refresh}), model.Position{})
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		typ := r.Type
		state, err := typ.Status(t.Context(), m.env, m.provider, r.Spec)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := typ.Plan(r.Spec, state, true)
		if err == nil {
			_, err = typ.Apply(t.Context(), m.env, m.provider, r.Spec, plan)
		}
		if (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) || c.message != "" && plan.Message() != c.message {
			t.Errorf("%+v: %q, %v", c, plan.Message(), err)
		}
		reloaded, restarted := m.sh("ls /root/reloaded 2>/dev/null || true") != "", m.sh("systemctl show -p MainPID --value "+c.name) != pid
		if reloaded != c.reloaded || restarted != c.restarted {
			t.Errorf("%+v: reloaded %t, restarted %t", c, reloaded, restarted)
		}
	}
}

// TestNoSystemd covers a machine where systemctl cannot reach systemd.
func TestNoSystemd(t *testing.T) {
	m := rigs.New(t)
	m.Lend("systemctl")
	env := resource.Env{Host: hosttest.New(t), Log: hosttest.Log(t)}
	if _, err := systemd.New(m.Root()).Status(t.Context(), env, "web"); err == nil || !strings.Contains(err.Error(), "systemctl show answered for 0 of 1 services") {
		t.Errorf("the error is %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := service.New(systemd.New("/")).Select(nil, &service.Spec{}); !errors.Is(err, model.ErrNoSuitableProvider) || !strings.Contains(err.Error(), "systemctl is not in") {
		t.Errorf("without systemctl: %v", err)
	}
}
