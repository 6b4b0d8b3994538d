package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// agent is a muster agent in a separate process, with one manifest on its own server.
type agent struct {
	pid     int
	store   *kvtest.Store
	reports jetstream.MessagesContext
}

// holding starts an agent and waits until it has made the files of a directory, each
// with the content.
func holding(b *testing.B, muster, dir string, n int, flapping, content string) *agent {
	b.Helper()
	srv, store := kvtest.New(b)
	consumer, err := store.JetStream().OrderedConsumer(b.Context(), "MUSTER_REPORTS", jetstream.OrderedConsumerConfig{})
	if err != nil {
		b.Fatal(err)
	}
	reports, err := consumer.Messages()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(reports.Stop)
	a := &agent{store: store, reports: reports}
	a.put(b, "site", held(dir, n, flapping, content))
	root := b.TempDir()
	file := filepath.Join(root, "agent.yaml")
	config := fmt.Sprintf("node: web01\nstate_dir: %s\nfacts_dir: %s\ninterval: 1h\nnats: {servers: [%q]}\n", filepath.Join(root, "state"), filepath.Join(root, "facts"), srv.URL())
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		b.Fatal(err)
	}
	a.start(b, exec.Command(muster, "--log-level", "error", "agent", "run", "--config", file))
	for {
		if r := a.report(b); r.kind == model.KindRun {
			if r.run.Counts.Made() != n {
				b.Fatalf("the first run: %+v", r.run)
			}
			return a
		}
	}
}

// put assigns a manifest to the node of the agent.
func (a *agent) put(b *testing.B, name, manifest string) {
	b.Helper()
	ctx, stop := context.WithTimeout(b.Context(), 5*time.Minute)
	defer stop()
	if _, err := a.store.Put(ctx, "node.web01."+name, []byte(manifest)); err != nil {
		b.Fatal(err)
	}
}

// start starts the process, which ends with the benchmark.
func (a *agent) start(b *testing.B, cmd *exec.Cmd) {
	b.Helper()
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	a.pid = cmd.Process.Pid
	b.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			b.Error(err)
		}
		if err := cmd.Wait(); err != nil || b.Failed() {
			b.Errorf("%v\n%s", err, tail(text.String()))
		}
	})
}

// held returns a manifest of n files with one content.
func held(dir string, n int, flapping, content string) string {
	var m strings.Builder
	m.WriteString("muster:\n")
	if flapping != "" {
		fmt.Fprintf(&m, "  flapping: %s\n", flapping)
	}
	fmt.Fprintf(&m, "  resources:\n  - file:\n    - defaults: {owner: '%d', group: '%d', mode: '0644', content: %q}\n", os.Geteuid(), os.Getegid(), content)
	for i := range n {
		fmt.Fprintf(&m, "    - %s: {}\n", filepath.Join(dir, heldName(i)))
	}

	return m.String()
}

func heldName(i int) string { return fmt.Sprintf("%05d", i) }

// storedReport is a report as the stream has it.
type storedReport struct {
	at          time.Time
	kind        string
	run         model.Run
	transaction model.Transaction
}

// report waits for the next message of reports. Of a batch, such as a first run's, it returns only the time.
func (a *agent) report(b *testing.B) storedReport {
	b.Helper()
	m, err := a.reports.Next(jetstream.NextMaxWait(5 * time.Minute))
	if err != nil {
		b.Fatal(err)
	}
	meta, err := m.Metadata()
	if err != nil {
		b.Fatal(err)
	}
	r := storedReport{at: meta.Timestamp}
	if m.Data()[0] == '[' {
		return r
	}
	r.kind = strings.Split(m.Subject(), ".")[3]
	var event struct{ Data json.RawMessage }
	err = json.Unmarshal(m.Data(), &event)
	switch {
	case err != nil:
	case r.kind == model.KindRun:
		err = json.Unmarshal(event.Data, &r.run)
	case r.kind == model.KindTransaction:
		err = json.Unmarshal(event.Data, &r.transaction)
	}
	if err != nil {
		b.Fatalf("%v\n%s", err, tail(string(m.Data())))
	}

	return r
}

// cpu returns the CPU time that a process has taken, in the ticks of a hundredth of a
// second that the kernel counts.
func cpu(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	// The name of the program, in parentheses, may have spaces.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatalf("%v\n%s", err, text)
		}
		ticks += n
	}

	return time.Duration(ticks) * time.Second / 100
}

// resident returns the resident memory of a process in MB.
func resident(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\nVmRSS:")
	var kB float64
	if _, err := fmt.Sscan(after, &kB); err != nil {
		b.Fatalf("%v\n%s", err, text)
	}

	return kB / 1024
}
