package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/natstest"
)

// TestOutputThatCannotBeWritten: a command fails if it cannot write its output.
func TestOutputThatCannotBeWritten(t *testing.T) {
	server := natstest.Start(t)
	dir := t.TempDir()
	manifest := write(t, filepath.Join(dir, "m.yaml"), fmt.Sprintf("muster: {resources: [{exec: [{\"true\": {creates: %q}}]}]}", dir))
	changing := write(t, filepath.Join(dir, "changing.yaml"), fmt.Sprintf("muster: {resources: [{file: [{%s/x: {content: x, owner: \"%d\", group: \"%d\", mode: \"0600\"}}]}]}", dir, os.Geteuid(), os.Getegid()))
	request := write(t, filepath.Join(dir, "request.json"), `{"protocol": "io.choria.ccm.v1.resource.ensure.request", "type": "exec", "properties": {"name": "true"}}`)
	muster := func(stdout *os.File, args ...string) (int, string) {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		cmd := exec.CommandContext(ctx, "muster", args...)
		cmd.Env = append(os.Environ(), "MUSTER_STATE_DIR="+filepath.Join(dir, "state"), "MUSTER_CONFIG_DIR="+dir, "NATS_URL="+server.URL())
		var said bytes.Buffer
		cmd.Stderr = &said
		if stdout != nil {
			cmd.Stdout = stdout
		}
		stdin, err := os.Open(request)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdin = stdin
		err = errors.Join(cmd.Run(), stdin.Close())
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), said.String()
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = full.Close() })
	r, left, err := os.Pipe()
	if err == nil {
		err = r.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = left.Close() })
	if code, said := muster(full, "fleet", "init", "--yes"); code == 0 || !strings.Contains(said, "no space left on device") {
		t.Fatalf("exit code %d, it says %q", code, said)
	}
	node := start(t, filepath.Join(dir, "node"), "--server", server.URL(), "agent", "run", "--node", "n1")
	await(t, "the node reports", func() bool {
		_, text := start(t, dir, "--server", server.URL(), "fleet", "reports", "--no-follow").wait()
		return strings.Contains(text, "started")
	})
	for _, line := range []string{
		"fleet push --node n1 " + manifest,
		"apply --json " + manifest, "apply --render " + manifest, "ensure exec true --json", "ensure api pipe", "status exec true",
		"facts", "schema", "schema manifest", "version", "agent config", "--help", "apply --help", "--version",
		"apply --noop " + changing,
		"fleet query --csv", "fleet query --json", "fleet reports --no-follow", "fleet reports --no-follow --yaml", "fleet reports --no-follow --reverse --limit 5", "fleet history n1",
		"fleet ls", "fleet ls --json", "fleet show node.n1.m", "fleet nodes --json", "fleet permissions n1", "fleet reports --no-follow --json",
	} {
		t.Run(line, func(t *testing.T) {
			args := strings.Fields(line)
			if code, said := muster(full, args...); code != 1 || strings.Contains(said, "panic") || !strings.Contains(said, "no space left on device") {
				t.Errorf("exit code %d, it says %q", code, said)
			}
			// A closed pipe is no error: the reader, such as head, has all it needs.
			if code, said := muster(left, args...); code != 0 || strings.Contains(said, "broken pipe") {
				t.Errorf("without a reader: exit code %d, it says %q", code, said)
			}
			if code, said := muster(nil, args...); code != 0 {
				t.Errorf("it fails by itself: exit code %d, it says %q", code, said)
			}
		})
	}
	// What a command finds wrong stays its exit code.
	if code, said := muster(nil, "fleet", "push", "--node", "n1", "--name", "other", write(t, filepath.Join(dir, "other.yaml"), "muster: {resources: [{exec: [{\"false\": {}}]}]}")); code != 0 {
		t.Error(said)
	}
	if code, said := muster(left, "fleet", "wait", "node.n1.other", "--json"); code != 1 || strings.Contains(said, "broken pipe") {
		t.Errorf("what failed, without a reader: exit code %d, it says %q", code, said)
	}
	if code, said := muster(full, "fleet", "reports", "--follow"); code == 0 || !strings.Contains(said, "no space left on device") {
		t.Errorf("following goes on: exit code %d, it says %q", code, said)
	}
	if err := node.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	node.wait()
}
