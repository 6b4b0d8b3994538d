//go:build system

package rigs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/rigs"
)

// TestSSHDIsReloadedOnlyWhenItAcceptsItsConfiguration stands programs in the
// places of sshd and systemctl that write down how they were called.
func TestSSHDIsReloadedOnlyWhenItAcceptsItsConfiguration(t *testing.T) {
	m := rigs.New(t)
	m.Copy(build(t), "/usr/local/bin/muster")
	m.Copy(filepath.Join(rigs.Checkout(t), "examples"), "/root/examples")
	program := func(path, text string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		m.Copy(file, path)
	}
	calls := func() string {
		t.Helper()
		return m.Run("cat", "/root/calls").Stdout
	}
	program("/usr/sbin/sshd", "echo sshd $* >> /root/calls\necho 'line 3: bad option' >&2\n[ -e /root/fixed ]\n")
	program("/usr/bin/systemctl", "[ $1 = is-active ] || echo systemctl $* >> /root/calls\n")

	apply := []string{"muster", "apply", "/root/examples/sshd.yaml"}
	r := m.Run(apply...)
	if r.Code != 1 || !strings.Contains(r.Stderr, "line 3: bad option") {
		t.Errorf("a configuration that sshd refuses gives exit code %d\n%s", r.Code, r.Stderr)
	}
	if got := calls(); got != "sshd -t\n" {
		t.Errorf("the programs were called as %q", got)
	}

	m.Run("touch", "/root/fixed")
	if r := m.Run(apply...); r.Code != 0 {
		t.Errorf("exit code %d\n%s", r.Code, r.Stderr)
	}
	if got, want := calls(), "sshd -t\nsshd -t\nsystemctl reload ssh\n"; got != want {
		t.Errorf("the programs were called as %q, want %q", got, want)
	}

	if r := m.Run(apply...); r.Code != 0 || strings.Count(calls(), "\n") != 3 {
		t.Errorf("nothing had changed, and the programs were called as %q (exit code %d)", calls(), r.Code)
	}
}
