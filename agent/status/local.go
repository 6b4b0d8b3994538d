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
	// ErrNotRunning means that no agent of the state directory answers.
	ErrNotRunning = errors.New("no agent runs with this state directory")
	// ErrDenied means that this user may not use the socket.
	ErrDenied = errors.New("only root and the user of the agent may ask it")
	// ErrUntrusted means that the socket belongs to a user other than root and the running user.
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

// address returns a short path of the socket in an open directory. A socket path has at most 107 bytes, and
// this path cannot be redirected.
func address(d *paths.Dir) *net.UnixAddr {
	return &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), socket)}
}

// checkPeer returns ErrUntrusted unless the peer is root or the running user.
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
