package agentcmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/state"
)

// claimed is a state directory that this process holds: its lock and its socket. The socket is nil if it
// could not be created.
type claimed struct {
	dir    string
	lock   *state.Claim
	socket *status.Listener
}

// claim makes this process the only agent of a state directory, and creates its socket. Without a socket the
// agent runs, but muster agent status does not work.
func (n *Node) claim(ctx context.Context, dir string) error {
	machine := host.New(host.Options{StateDir: dir, Log: n.log})
	if err := machine.OpenState(false); err != nil {
		return err
	}
	held, err := machine.Claim("muster agent run")
	if other := (state.LockedError{}); errors.As(err, &other) {
		return fmt.Errorf("the state directory %s is in use by %s: stop that agent, or choose another directory with state_dir or --state-dir", dir, other.Holder)
	}
	if err != nil {
		return err
	}
	n.held = claimed{dir: dir, lock: held}
	n.listen(ctx)
	n.closers = append(n.closers, func() error { return n.held.release() })

	return nil
}

// listen creates the socket.
func (n *Node) listen(ctx context.Context) {
	socket, err := status.Listen(n.held.dir)
	if err != nil {
		n.log.WarnContext(ctx, "muster agent status will not work", "error", err)
		return
	}
	n.held.socket = socket
}

// release closes the socket, then releases the directory: another agent may then create its own socket.
func (c *claimed) release() (err error) {
	if c.socket != nil {
		if err = c.socket.Close(); errors.Is(err, fs.ErrNotExist) {
			err = nil // the socket was removed with the directory
		}
	}

	return errors.Join(err, c.lock.Release())
}

// keepClaim answers on the socket until ctx ends. If the directory was replaced, it claims the new directory.
// It returns an error if another agent holds that one.
func (n *Node) keepClaim(ctx context.Context) error {
	for {
		serving, end := context.WithCancel(ctx)
		var served sync.WaitGroup
		served.Go(func() { n.answerLocally(serving) })
		held, err := n.claimAgain(ctx)
		end()
		served.Wait()
		if held == nil {
			return err
		}
		if err := n.held.release(); err != nil {
			n.log.DebugContext(ctx, "cannot release the former state directory", "error", err)
		}
		n.held = claimed{dir: n.held.dir, lock: held}
		n.listen(ctx)
		n.log.WarnContext(ctx, "state directory was replaced; claimed the new one", "directory", n.held.dir)
	}
}

// claimAgain waits until the claim is lost, and claims the directory again. It returns nil when ctx ends.
// After a temporary error, such as a full disk, it tries again at the next heartbeat.
func (n *Node) claimAgain(ctx context.Context) (*state.Claim, error) {
	machine := host.New(host.Options{StateDir: n.held.dir, Log: n.log})
	for {
		select {
		case <-ctx.Done():
			return nil, nil
		case <-n.heartbeats:
		}
		if !n.held.lock.IsLost() {
			continue
		}
		held, err := machine.Claim("muster agent run")
		if other := (state.LockedError{}); errors.As(err, &other) {
			return nil, fmt.Errorf("the state directory %s was replaced, and is in use by %s: two agents cannot share it", n.held.dir, other.Holder)
		}
		if err == nil {
			return held, nil
		}
		n.log.DebugContext(ctx, "cannot claim the state directory again, will retry", "error", err)
	}
}

// answerLocally answers on the socket until ctx ends.
func (n *Node) answerLocally(ctx context.Context) {
	if n.held.socket == nil {
		return
	}
	if err := n.held.socket.Serve(ctx, n.routes(), n.log); err != nil {
		n.log.ErrorContext(ctx, "muster agent status stopped working", "error", err)
	}
}
