//go:build system

package rigs

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// relay connects its input and output with a socket.
const relay = `use IO::Socket::UNIX; $s = IO::Socket::UNIX->new(Peer => shift) or die "$!"; $SIG{CHLD} = sub { exit };
if (fork) { while (sysread STDIN, $b, 65536) { syswrite $s, $b } $s->shutdown(1); wait } else { while (sysread $s, $b, 65536) { syswrite STDOUT, $b } }`

// LendSocket returns a directory below which the machine's socket of a path is,
// until the end of the test. Who connects to it is a process of the machine:
// systemd refuses those that it cannot see.
func (m *Machine) LendSocket(path string) (root string) {
	m.t.Helper()
	root, err := os.MkdirTemp("", "socket")
	if err != nil {
		m.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755); err != nil {
		m.t.Fatal(err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(root, path), Net: "unix"})
	if err != nil {
		m.t.Fatal(err)
	}
	ended := make(chan struct{})
	m.t.Cleanup(func() {
		_ = listener.Close()
		<-ended
		_ = os.RemoveAll(root)
	})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.AcceptUnix()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				err = m.relay(conn, path)
			}
			if err != nil {
				m.t.Errorf("%s: %v", path, err)
			}
		}
	}()

	return root
}

// relay connects one caller, one after the other.
func (m *Machine) relay(conn *net.UnixConn, path string) error {
	defer conn.Close()
	file, err := conn.File()
	if err != nil {
		return err
	}
	defer file.Close()
	cmd := exec.Command("nsenter", append(slices.Clone(m.enter), "perl", "-e", relay, path)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = file, file, os.Stderr

	return cmd.Run()
}
