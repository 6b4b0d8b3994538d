package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/testing/hosttest"
)

// TestDemoDashboard checks the demo on a terminal: after its last step it runs until ctrl-C, shows the nodes in the
// dashboard and prints live reports. It leaves no files.
func TestDemoDashboard(t *testing.T) {
	temp := t.TempDir()
	cmd, terminal, text, read := demoOnTerminal(t, temp)
	await(t, "it is at its end", func() bool { return strings.Contains(text.String(), "The reports, live:") })
	addresses := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindAllString(text.String(), -1)
	if len(addresses) < 2 || addresses[0] != addresses[len(addresses)-1] || strings.Index(text.String(), addresses[0]) > strings.Index(text.String(), "3/7") {
		t.Fatalf("the address is not at the start and the end:\n%s", text.String())
	}
	if taught := "muster fleet exec --node demo -- uptime"; !strings.Contains(text.String(), taught) {
		t.Errorf("%q is not taught:\n%s", taught, text.String())
	}
	for path, wants := range map[string][]string{
		"nodes":          {">demo</a>", ">sim-0001</a>", ">sim-0025</a>"},
		"api/v1/nodes":   {`"known":26`},
		"nodes/demo":     {"node.demo.site"},
		"manifests/base": {"sim-0001"},
	} {
		await(t, path+" shows "+fmt.Sprint(wants), func() bool {
			response, err := http.Get(addresses[0] + path)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			page, err := io.ReadAll(response.Body)
			has := func(want string) bool { return strings.Contains(string(page), want) }
			return err == nil && response.StatusCode == http.StatusOK && !slices.ContainsFunc(wants, func(want string) bool { return !has(want) })
		})
	}
	// A user without a password gets no access: an administrator may do anything on the node.
	env := regexp.MustCompile(`export (NATS_URL=\S+) (NATS_USER=admin) (NATS_PASSWORD_FILE=\S+)\r?\n`).FindStringSubmatch(text.String())
	if env == nil {
		t.Fatalf("it does not say how to connect:\n%s", text.String())
	}
	for with, want := range map[int]bool{2: false, 4: true} {
		asked := exec.CommandContext(t.Context(), "muster", "fleet", "exec", "--node", "demo", "--timeout", "10s", "--", "echo", "done as", "root")
		asked.Env = append(os.Environ(), env[1:with]...)
		if out, err := asked.CombinedOutput(); (err == nil) != want || strings.Contains(string(out), "done as root") != want {
			t.Errorf("with %v: %v\n%s", env[1:with], err, out)
		}
	}
	live := func() string {
		_, text, _ := strings.Cut(text.String(), "The reports, live:")
		return text
	}
	checkLive(t, live, addresses[0], env[1:])
	if _, err := terminal.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after ctrl-C: %v", err)
	}
	<-read
	if strings.Contains(text.String(), "WARN") || strings.Contains(text.String(), "ERROR") {
		t.Errorf("it warns:\n%s", text.String())
	}
	checkNothingLeft(t, temp)
}

// demoOnTerminal starts the demo on a terminal. read is closed when text has all of its output.
func demoOnTerminal(t *testing.T, temp string) (cmd *exec.Cmd, terminal *os.File, text *output, read chan struct{}) {
	t.Helper()
	terminal, muster := hosttest.Terminal(t)
	text = &output{}
	cmd = exec.CommandContext(t.Context(), "muster", "demo")
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = muster, muster, muster
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := muster.Close(); err != nil {
		t.Error(err)
	}
	read = make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(text, terminal) // ends with an error, as the terminal does
	}()

	return cmd, terminal, text, read
}

func checkNothingLeft(t *testing.T, temp string) {
	t.Helper()
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// TestDemoEndsWithItsTerminal closes the terminal of the demo during a step and after the last step: no files are left.
func TestDemoEndsWithItsTerminal(t *testing.T) {
	for _, moment := range []string{"4/7", "The reports, live:"} {
		t.Run(moment, func(t *testing.T) {
			temp := t.TempDir()
			cmd, terminal, text, read := demoOnTerminal(t, temp)
			await(t, moment, func() bool { return strings.Contains(text.String(), moment) })
			if err := terminal.Close(); err != nil {
				t.Fatal(err)
			}
			<-read
			err := cmd.Wait()
			if signal := cmd.ProcessState.Sys().(syscall.WaitStatus); signal.Signaled() {
				t.Errorf("the demo was killed: %v", err)
			}
			checkNothingLeft(t, temp)
		})
	}
}

// TestInterruptedDemo presses ctrl-C in a step.
func TestInterruptedDemo(t *testing.T) {
	temp := t.TempDir()
	cmd, terminal, text, read := demoOnTerminal(t, temp)
	await(t, "a step begins", func() bool { return strings.Contains(text.String(), "3/7") })
	if _, err := terminal.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	<-read
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(text.String(), "muster: interrupted\r\n") {
		t.Errorf("exit code %d, %v:\n%s", code, err, text.String())
	}
	checkNothingLeft(t, temp)
}

// checkLive checks the live reports of the demo: they show changes, keep the address of the dashboard in view, and show
// neither earlier reports nor runs without changes.
func checkLive(t *testing.T, live func() string, address string, env []string) {
	t.Helper()
	stable := func() int {
		cmd := exec.CommandContext(t.Context(), "muster", "fleet", "reports", "--no-follow", "--node", "demo", "--kind", "run", "--outcome", "stable")
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(out), "\n")
	}
	motd := filepath.Join(filepath.Dir(strings.TrimPrefix(env[2], "NATS_PASSWORD_FILE=")), "site", "motd")
	for i := range 5 {
		write(t, motd, "tampered\n")
		await(t, "the repair is shown", func() bool { return strings.Count(live(), "(drift, repaired in ") > i })
	}
	await(t, "the address is shown again", func() bool { return strings.Contains(live(), address) })
	before := stable()
	await(t, "a run changes nothing", func() bool { return stable() > before })
	for _, unwanted := range []string{" stable ", " started ", "created the file", "sim-0", "prints the stored reports"} {
		if strings.Contains(live(), unwanted) {
			t.Errorf("the live reports have %q:\n%s", unwanted, live())
		}
	}
	if err := errors.Join(os.Remove(motd), os.Mkdir(motd, 0o755)); err != nil {
		t.Fatal(err)
	}
	await(t, "a failure is shown", func() bool { return strings.Contains(live(), " failed ") })
}
