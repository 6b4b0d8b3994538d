//go:build system

package rigs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/rigs"
)

// hundred is how many packages and services these tests have.
const hundred = 100

// trace records every start of a program on a machine, with wrappers in a directory that leads every search
// path.
const trace = `for program in /usr/bin/* /usr/sbin/*; do
  name=${program##*/}
  printf '#!/bin/sh\nprintf "%%s %%s\\n" %s "$1" >> /root/calls\nexec %s "$@"\n' "$name" "$program" > "/usr/local/sbin/$name"
done
chmod 755 /usr/local/sbin/*`

// noBus takes the socket away on which systemd answers root.
const noBus = "mount --bind /dev/null /run/systemd/private"

// crowd is a booted machine with muster and units s0 to s99.
type crowd struct{ node }

func newCrowd(t testing.TB) crowd {
	t.Helper()
	c := crowd{node{Machine: rigs.Boot(t), t: t}}
	c.Copy(build(t), "/usr/local/bin/muster")
	c.sh(fmt.Sprintf(`for i in $(seq 0 %d); do
  printf '[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n' > /usr/lib/systemd/system/s$i.service
done`, hundred-1))

	return c
}

// calls gives the programs that were started since it was last asked, each with its first argument.
func (c crowd) calls() []string {
	c.t.Helper()
	path := filepath.Join(c.Root(), "root/calls")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		out = append(out, strings.TrimSpace(line))
	}

	return out
}

// services gives a manifest of all services, and of what else is to stand among them.
func services(properties string, more ...string) string {
	var b strings.Builder
	b.WriteString("muster:\n  resources:\n    - service:\n")
	for i := range hundred {
		fmt.Fprintf(&b, "        - s%d: %s\n", i, properties)
		if i == hundred/2 {
			for _, line := range more {
				fmt.Fprintf(&b, "        - %s\n", line)
			}
		}
	}

	return b.String()
}

// TestManyServicesTogether has services that are due together started, restarted
// and stopped with one command each.
func TestManyServicesTogether(t *testing.T) {
	c := newCrowd(t)
	c.sh(`printf '[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c "echo it is broken; exit 1"\n[Install]\nWantedBy=multi-user.target\n' > /usr/lib/systemd/system/broken.service` + "\n" + trace)
	run := func(manifest string, code int, want ...string) map[model.Outcome]int {
		t.Helper()
		put(t, c.Machine, "/root/m.yaml", manifest)
		c.calls()
		r := c.Run("muster", "apply", "--json", "/root/m.yaml")
		if got := c.calls(); !slices.Equal(got, want) {
			t.Errorf("the calls are %q, not %q", got, want)
		}
		if r.Code != code {
			t.Errorf("exit code %d\n%s", r.Code, r.Stderr)
		}
		return countOutcomes(t, r.Stdout)
	}
	const reload = "systemctl daemon-reload"
	all := services("{enable: true}")
	if got := run(all, 0, reload, "systemctl start", "systemctl enable"); got[model.OutcomeChanged] != hundred {
		t.Errorf("started: %v", got)
	}
	if got := run(all, 0); got[model.OutcomeStable] != hundred {
		t.Errorf("again: %v", got)
	}
	const subscribed = "{subscribe: [file#/root/conf]}"
	const conf = "    - file:\n        - /root/conf: {content: x, owner: root, group: root, mode: \"0644\"}\n"
	before := c.pids()
	if got := run(services(subscribed)+conf, 0, reload, "systemctl restart"); got[model.OutcomeRefreshed] != hundred {
		t.Errorf("restarted: %v", got)
	}
	for name, pid := range c.pids() {
		if pid == before[name] {
			t.Errorf("%s is still process %s", name, pid)
		}
	}
	if got := run(services("{ensure: stopped, enable: false}"), 0, reload, "systemctl stop", "systemctl disable"); got[model.OutcomeChanged] != hundred {
		t.Errorf("stopped: %v", got)
	}

	// A failed service is retried alone and reported. The others are not, and it is still enabled.
	got := run(services("{enable: true}", "broken: {enable: true}"), 1,
		reload, "systemctl start", "systemctl enable", "systemctl start", "journalctl --sync", "journalctl --quiet")
	if got[model.OutcomeChanged] != hundred || got[model.OutcomeFailed] != 1 {
		t.Errorf("with a broken one: %v", got)
	}
	if r := c.Run("sh", "-c", "systemctl is-enabled broken s0 s99; muster apply /root/m.yaml"); !strings.HasPrefix(r.Stdout, "enabled\nenabled\nenabled\n") || !strings.Contains(r.Stderr, "it is broken") {
		t.Errorf("%+v", r)
	}
}

// pids gives the processes of the services.
func (c crowd) pids() map[string]string {
	c.t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(c.sh("for i in $(seq 0 99); do echo s$i; done | xargs systemctl show -p Id,MainPID | paste -s -d ' \n\n'")) {
		if f := strings.Fields(line); len(f) == 2 {
			out[f[1]] = f[0]
		}
	}
	if len(out) != hundred {
		c.t.Fatalf("the processes are %v", out)
	}

	return out
}

// countOutcomes counts the transactions in the output of muster apply.
func countOutcomes(t *testing.T, output string) map[model.Outcome]int {
	t.Helper()
	out := map[model.Outcome]int{}
	for _, tx := range transactions(t, output) {
		out[tx.Outcome()]++
	}

	return out
}

// stable is a manifest of a hundred packages and services that are as they should be.
func (c crowd) stable() string {
	c.t.Helper()
	c.sh(`systemctl daemon-reload; for i in $(seq 0 99); do echo s$i; done | xargs systemctl -q enable --now`)
	installed := strings.Fields(c.sh("dpkg-query -W -f '${Package}\n'"))
	if len(installed) < hundred {
		c.t.Fatalf("only %d packages are installed", len(installed))
	}
	var b strings.Builder
	b.WriteString(services("{enable: true}"))
	b.WriteString("    - package:\n")
	for _, name := range installed[:hundred] {
		fmt.Fprintf(&b, "        - %s:\n", name)
	}

	return b.String()
}

// TestStableRunStartsOneProcess asks one command for all packages, and systemd
// itself for all services; another command where systemd refuses D-Bus.
func TestStableRunStartsOneProcess(t *testing.T) {
	c := newCrowd(t)
	put(t, c.Machine, "/root/m.yaml", c.stable())
	c.sh(trace)
	check := func(want ...string) {
		t.Helper()
		for _, flags := range [][]string{nil, {"--noop"}} {
			c.calls()
			got := apply(t, c.Machine, append(flags, "/root/m.yaml")...)
			if calls := c.calls(); !slices.Equal(slices.Sorted(slices.Values(calls)), want) {
				t.Errorf("%q: the processes are %q", flags, calls)
			}
			for _, tx := range got {
				if tx.Outcome() != model.OutcomeStable {
					t.Errorf("%s is %s", tx.Ref(), tx.Outcome())
				}
			}
			if len(got) != 2*hundred {
				t.Errorf("%d transactions", len(got))
			}
		}
	}
	check("dpkg-query -W")
	// Anyone else than root asks over the system bus.
	r := c.Run("sh", "-c", `mkdir /fake; printf '#!/bin/sh\nexit 9\n' > /fake/systemctl; chmod 755 /fake /fake/systemctl
exec setpriv --reuid=65534 --clear-groups env PATH=/fake /usr/local/bin/muster status service s7`)
	if r.Code != 0 || !strings.Contains(r.Stdout, `"ensure": "running"`) {
		t.Errorf("as nobody: %+v", r)
	}
	c.sh(noBus)
	check("dpkg-query -W", "systemctl show")
}

// BenchmarkPackagesAndServices runs a hundred packages and services: stable, and with stopped services, which
// start together or, with fail_on_error, one by one. CPU covers muster and its processes; systemd's is a
// separate figure.
func BenchmarkPackagesAndServices(b *testing.B) {
	c := newCrowd(b)
	together := c.stable()
	measure := func(b *testing.B, manifest string, prepare func()) {
		put(b, c.Machine, "/root/m.yaml", manifest)
		var cpu, systemd, n float64
		for b.Loop() {
			b.StopTimer()
			prepare()
			before := c.systemdCPU()
			b.StartTimer()
			r := c.Run("muster", "--log-level", "error", "apply", "/root/m.yaml")
			if r.Code != 0 {
				b.Fatal(r.Stderr)
			}
			cpu, n, systemd = cpu+float64(r.CPU.Milliseconds()), n+1, systemd+c.systemdCPU()-before
		}
		b.ReportMetric(cpu/n, "cpu-ms/op")
		b.ReportMetric(systemd/n, "systemd-cpu-ms/op")
	}
	stop := func() { c.sh("for i in $(seq 0 99); do echo s$i; done | xargs systemctl stop") }
	oneByOne := strings.Replace(together, "muster:\n", "muster:\n  fail_on_error: true\n", 1)
	b.Run("stable", func(b *testing.B) { measure(b, together, func() {}) })
	b.Run("started/together", func(b *testing.B) { measure(b, together, stop) })
	b.Run("started/one-by-one", func(b *testing.B) { measure(b, oneByOne, stop) })
}

// systemdCPU gives the milliseconds that systemd has taken so far.
func (c crowd) systemdCPU() float64 {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.Root(), "proc/1/stat"))
	if err != nil {
		c.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	const user, system, perTick = 11, 12, 10
	total := 0
	for _, field := range []int{user, system} {
		ticks, err := strconv.Atoi(strings.Fields(rest)[field])
		if err != nil {
			c.t.Fatal(err)
		}
		total += ticks
	}

	return float64(total * perTick)
}
