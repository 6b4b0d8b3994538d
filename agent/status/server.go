package status

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// answerTimeout limits reading a request and writing its answer.
const answerTimeout = 30 * time.Second

// Listener is the socket of an agent. Create it with Listen and close it.
type Listener struct {
	*net.UnixListener
	dir *paths.Dir
}

// Listen creates the socket in a state directory that this process has claimed, with mode 0600. It replaces
// the socket of a killed agent. Any other file at the path is an error.
func Listen(dir string) (*Listener, error) {
	d, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	l := &Listener{dir: d}
	var st unix.Stat_t
	switch err = d.Stat(socket, &st); {
	case err == nil && st.Mode&unix.S_IFMT != unix.S_IFSOCK:
		err = fmt.Errorf("%s/%s is no socket: move it away", dir, socket)
	case err == nil:
		err = unix.Unlinkat(d.Fd(), socket, 0)
	case paths.IsAbsent(err):
		err = nil
	}
	if err == nil {
		l.UnixListener, err = net.ListenUnix("unix", address(d))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("local socket: %w", err), d.Close())
	}
	l.SetUnlinkOnClose(false) // Close removes it, even after the directory was renamed
	if err := unix.Fchmodat(d.Fd(), socket, 0o600, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("local socket: %w", err), l.Close())
	}

	return l, nil
}

// Close removes the socket.
func (l *Listener) Close() error {
	return errors.Join(unix.Unlinkat(l.dir.Fd(), socket, 0), l.UnixListener.Close(), l.dir.Close())
}

// Accept returns the next connection of root or the running user.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if checkPeer(c) == nil {
			return c, nil
		}
		_ = c.Close() // the mode of the socket refuses all others before
	}
}

// Serve answers requests until ctx ends. It then aborts running requests. The caller closes the listener.
func (l *Listener) Serve(ctx context.Context, handler http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler: handler, ReadTimeout: answerTimeout, WriteTimeout: answerTimeout, IdleTimeout: answerTimeout,
		MaxHeaderBytes: 1 << 14, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	err := server.Serve(keptOpen{l})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}

	return err
}

// keptOpen is a listener that the server does not close.
type keptOpen struct{ *Listener }

// Close ends Accept.
func (l keptOpen) Close() error { return l.SetDeadline(time.Unix(1, 0)) }
