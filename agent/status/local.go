package status

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// socket is the name of the socket in the state directory.
const socket = "agent.sock"

var (
	// ErrNotRunning is a state directory without an agent that answers.
	ErrNotRunning = errors.New("no agent runs with this state directory")
	// ErrDenied is a socket that this user may not use.
	ErrDenied = errors.New("only root and the user of the agent may ask it")
	// ErrUntrusted is a socket of another user than root and the running one.
	ErrUntrusted = errors.New("the socket belongs to another user")
)

// openDir opens a state directory that only root and the running user may change.
func openDir(dir string) (*paths.Dir, error) {
	d, err := paths.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	if err := d.CheckOwn(); err != nil {
		return nil, errors.Join(err, d.Close())
	}

	return d, nil
}

// address returns a short path of the socket in an open directory: that of a socket has
// at most 107 bytes, and nobody can exchange the directory meanwhile.
func address(d *paths.Dir) *net.UnixAddr {
	return &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), socket)}
}

// checkPeer returns ErrUntrusted unless root or the running user is at the other end.
func checkPeer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	if failed := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); failed != nil || err != nil {
		return errors.Join(failed, err)
	}
	if peer.Uid != 0 && peer.Uid != uint32(os.Geteuid()) {
		return fmt.Errorf("%w, with uid %d", ErrUntrusted, peer.Uid)
	}

	return nil
}
