package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/command"
)

// envCheck has the test binary make a check of the command that it holds.
const envCheck = "MAKE_HEALTH_CHECK"

func TestMain(m *testing.M) {
	if command := os.Getenv(envCheck); command != "" {
		engine.NewChecker(host.New(host.Options{})).CheckAll(context.Background(), []model.HealthCheck{{Command: command}}, nil)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runCheck makes one check by a shell.
func runCheck(t *testing.T, script string, more ...func(*model.HealthCheck)) model.HealthResult {
	t.Helper()
	c := model.HealthCheck{Name: "test", Format: model.HealthNagios, Command: "sh -c '" + script + "'"}
	for _, f := range more {
		f(&c)
	}

	return engine.NewChecker(host.New(host.Options{})).CheckAll(t.Context(), []model.HealthCheck{c}, nil)[0]
}

func tries(n int, sleep time.Duration) func(*model.HealthCheck) {
	return func(c *model.HealthCheck) {
		d := model.Duration(sleep)
		c.Tries, c.TrySleep = &n, &d
	}
}

func timeout(d time.Duration) func(*model.HealthCheck) {
	return func(c *model.HealthCheck) { c.Timeout = (*model.Duration)(&d) }
}

// TestCriticalOnNonzero runs commands that do not use the exit codes of Nagios.
func TestCriticalOnNonzero(t *testing.T) {
	nonzero := func(c *model.HealthCheck) { c.CriticalOn = model.CriticalOnNonzero }
	for code, want := range map[int]model.HealthStatus{
		0: model.HealthOK, 1: model.HealthCritical, 2: model.HealthCritical, 3: model.HealthCritical, 127: model.HealthCritical,
	} {
		if got := runCheck(t, fmt.Sprintf("exit %d", code), nonzero); got.Status != want {
			t.Errorf("%d: %+v, want %s", code, got, want)
		}
	}
	if got := runCheck(t, "kill -9 $$", nonzero); got.Status != model.HealthCritical {
		t.Errorf("killed by a signal: %+v", got)
	}
}

// TestExitCodes covers the exit codes in formats.md, "Health checks".
func TestExitCodes(t *testing.T) {
	for code, want := range map[int]model.HealthStatus{
		0: model.HealthOK, 1: model.HealthWarning, 2: model.HealthCritical, 3: model.HealthUnknown, 4: model.HealthUnknown, 127: model.HealthUnknown, 255: model.HealthUnknown,
	} {
		got := runCheck(t, fmt.Sprintf("echo said; exit %d", code))
		if got.Status != want || got.Tries != 1 || got.Output != "said" || got.Name != "test" || got.Format != model.HealthNagios || got.Duration <= 0 {
			t.Errorf("%d: %+v, want %s", code, got, want)
		}
	}
}

func TestWhatACheckSays(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for script, want := range map[string]string{
		"echo out; echo err >&2":         "out",
		"echo err >&2":                   "err",
		"printf \"a\\n\\nb\\n\\n\"":      "a\n\nb",
		"true":                           "",
		"printf \"\\377\"":               "\uFFFD",
		"echo " + long:                   long[:4096] + " … (cut)",
		"echo $NATS_URL$MUSTER_LOG_X.":   ".",
		"read line; echo \"<$line>\"":    "<>",
		"test -t 0 && echo terminal; :":  "",
		"echo 1 >&2; sleep 0; echo 2>&1": "1",
	} {
		if got := runCheck(t, script); got.Output != want {
			t.Errorf("%.60s: %q, want %q", script, got.Output, want)
		}
	}
}

func TestTries(t *testing.T) {
	counter := filepath.Join(t.TempDir(), "n")
	script := fmt.Sprintf("echo x >>%s; test $(wc -l <%s) -ge 3 || exit ", counter, counter)
	for _, c := range []struct {
		code, tries, made int
		want              model.HealthStatus
	}{
		{2, 5, 3, model.HealthOK}, {1, 5, 3, model.HealthOK}, {3, 5, 3, model.HealthOK},
		{2, 2, 2, model.HealthCritical}, {1, 2, 2, model.HealthWarning}, {2, 1, 1, model.HealthCritical},
	} {
		_ = os.Remove(counter)
		got := runCheck(t, fmt.Sprint(script, c.code), tries(c.tries, 0))
		if got.Status != c.want || got.Tries != c.made {
			t.Errorf("%+v gave %+v", c, got)
		}
	}
}

func TestTimeout(t *testing.T) {
	got := runCheck(t, "echo begun; sleep 3600", timeout(50*time.Millisecond))
	if got.Status != model.HealthCritical || !strings.HasSuffix(got.Output, "timed out after 50ms") {
		t.Errorf("%+v", got)
	}
}

// held returns the path of a named pipe, and a channel that ends when no process can write to it.
func held(t *testing.T) (path string, ended <-chan error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := os.ReadFile(path)
		done <- err
	}()

	return path, done
}

// TestNothingIsLeftBehind has commands that leave a process in the background.
func TestNothingIsLeftBehind(t *testing.T) {
	path, ended := held(t)
	script := fmt.Sprintf("exec 3>%s; trap \"\" TERM HUP; sleep 1000 & echo left; exit 1", path)
	if got := runCheck(t, script); got.Status != model.HealthWarning || got.Output != "left" {
		t.Errorf("%+v", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	path, ended = held(t)
	c := engine.NewChecker(host.New(host.Options{}), "sh", "-c", "exec 3>"+path+"; sleep 1000 & exit 2")
	if got := c.CheckAll(t.Context(), []model.HealthCheck{{Name: "g", GossRules: model.GossRules{}}}, nil)[0]; got.Status != model.HealthCritical {
		t.Errorf("%+v", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestKilledWithItsMuster kills the process that makes a check.
func TestKilledWithItsMuster(t *testing.T) {
	path, ended := held(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	begun := filepath.Join(t.TempDir(), "begun")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("sh -c 'exec 3>%s; echo begun >%s; exec sleep 1000'", path, begun)
	ctx, kill := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := host.New(host.Options{}).Run(ctx, command.Command{Argv: []string{self}, Env: []string{envCheck + "=" + script}})
		done <- err
	}()
	if _, err := os.ReadFile(begun); err != nil {
		t.Fatal(err)
	}
	kill()
	if err := <-done; err == nil {
		t.Error("it was not killed")
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestRulesGetTheTimeOfTheCheck covers rules that goss itself would stop earlier.
func TestRulesGetTheTimeOfTheCheck(t *testing.T) {
	c := engine.NewChecker(host.New(host.Options{}), "cat")
	rules := model.GossRules{"command": {"a": {"exit-status": 0}, "b": {"timeout": 500}}, "http": {"c": {"status": 200}}, "mount": {"d": {"exists": true}}, "addr": {"e": {"reachable": false}}, "dns": {"f": {"resolvable": false}}}
	for timeout, ms := range map[time.Duration]string{0: "60000", 30 * time.Second: "30000"} {
		check := model.HealthCheck{Name: "g", GossRules: rules}
		if timeout > 0 {
			check.Timeout = (*model.Duration)(&timeout)
		}
		want := strings.ReplaceAll(`{"addr":{"e":{"reachable":false}},"command":{"a":{"exit-status":0,"timeout":MS},"b":{"timeout":500}},"dns":{"f":{"resolvable":false}},"http":{"c":{"status":200,"timeout":MS}},"mount":{"d":{"exists":true,"timeout":MS}}}`, "MS", ms)
		if got := c.CheckAll(t.Context(), []model.HealthCheck{check}, nil)[0]; got.Output != want {
			t.Errorf("%s: got  %s\nwant %s", timeout, got.Output, want)
		}
	}
	if rules["command"]["a"]["timeout"] != nil {
		t.Error("the rules of the check were changed")
	}
}

func TestThatCannotBeMade(t *testing.T) {
	c := engine.NewChecker(host.New(host.Options{}))
	got := c.CheckAll(t.Context(), []model.HealthCheck{
		{Name: "missing", Command: "/does/not/exist"},
		{Name: "rules", GossRules: model.GossRules{}, Format: model.HealthGoss},
	}, nil)
	if got[0].Status != model.HealthUnknown || !strings.Contains(got[0].Output, "/does/not/exist does not exist") {
		t.Errorf("%+v", got[0])
	}
	if got[1].Status != model.HealthUnknown || got[1].Output != "goss rules cannot be evaluated here" || got[1].Format != model.HealthGoss {
		t.Errorf("%+v", got[1])
	}
}

// TestBrokenOff: a check that does not come to its end has no status.
func TestBrokenOff(t *testing.T) {
	enough := errors.New("enough")
	hour := time.Hour
	for name, script := range map[string]string{"before it": "", "in it": "echo begun >%s; sleep 3600", "between tries": "echo begun >%s; exit 2"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		path := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if script == "" {
			cancel(enough)
		} else {
			script = fmt.Sprintf(script, path)
			go func() {
				_, _ = os.ReadFile(path)
				cancel(enough)
			}()
		}
		c := model.HealthCheck{Name: "a", Command: "sh -c '" + script + "'"}
		tries(3, hour)(&c)
		got := engine.NewChecker(host.New(host.Options{})).CheckAll(ctx, []model.HealthCheck{c}, nil)[0]
		if got.Status != "" || got.Name != "a" || got.Tries != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestManyAtOnce has checks that wait for one another.
func TestManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	var checks []model.HealthCheck
	for i := range 8 {
		script := fmt.Sprintf("sh -c 'touch %s/%d; until test -e %s/7; do sleep 0.01; done; echo $WHO'", dir, i, dir)
		checks = append(checks, model.HealthCheck{Name: fmt.Sprint(i), Command: script})
	}
	for i, got := range engine.NewChecker(host.New(host.Options{})).CheckAll(t.Context(), checks, []string{"WHO=me"}) {
		if got.Status != model.HealthOK || got.Name != fmt.Sprint(i) || got.Output != "me" {
			t.Errorf("%d: %+v", i, got)
		}
	}
}

// TestRulesGoToTheEvaluator has an evaluator that prints its input.
func TestRulesGoToTheEvaluator(t *testing.T) {
	c := engine.NewChecker(host.New(host.Options{}), "sh", "-c", "cat; exit 2")
	rules := model.GossRules{"file": {"/etc/motd": {"exists": true}}}
	got := c.CheckAll(t.Context(), []model.HealthCheck{{Name: "g", GossRules: rules, Format: model.HealthGoss}}, nil)[0]
	if got.Status != model.HealthCritical || got.Output != `{"file":{"/etc/motd":{"exists":true}}}` || got.Format != model.HealthGoss {
		t.Errorf("%+v", got)
	}
}
