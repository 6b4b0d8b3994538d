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

// claimed is a state directory that this process has: its lock, and its socket, nil where that
// could not be made.
type claimed struct {
	dir    string
	lock   *state.Claim
	socket *status.Listener
}

// claim makes this process the one agent of a state directory, and makes its socket.
// Without a socket the agent runs all the same: what it does for the machine matters more.
func (n *Node) claim(ctx context.Context, dir string) error {
	machine := host.New(host.Options{StateDir: dir, Log: n.log})
	if err := machine.OpenState(false); err != nil {
		return err
	}
	held, err := machine.Claim("muster agent run")
	if other := (state.LockedError{}); errors.As(err, &other) {
		return fmt.Errorf("the state directory %s is in use by %s: stop that agent, or give this one a directory of its own (state_dir, or --state-dir)", dir, other.Holder)
	}
	if err != nil {
		return err
	}
	n.held = claimed{dir: dir, lock: held}
	n.listen(ctx)
	n.closers = append(n.closers, func() error { return n.held.release() })

	return nil
}

// listen makes the socket.
func (n *Node) listen(ctx context.Context) {
	socket, err := status.Listen(n.held.dir)
	if err != nil {
		n.log.WarnContext(ctx, "muster agent status will not work", "error", err)
		return
	}
	n.held.socket = socket
}

// release gives the directory back, after its socket: another one may make its own then.
func (c *claimed) release() (err error) {
	if c.socket != nil {
		if err = c.socket.Close(); errors.Is(err, fs.ErrNotExist) {
			err = nil // who removed the directory removed the socket
		}
	}

	return errors.Join(err, c.lock.Release())
}

// keepClaim answers on the socket until ctx ends. Where another directory is in the place of
// the claimed one it claims that; the error is that another agent has it.
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
		n.log.WarnContext(ctx, "state directory claimed again: another one is in its place", "directory", n.held.dir)
	}
}

// claimAgain waits until the claim is lost, and returns another one, nil when ctx ended. What
// may pass, such as a full disk, is tried again at the next heartbeat.
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
		n.log.ErrorContext(ctx, "muster agent status does not work any more", "error", err)
	}
}
