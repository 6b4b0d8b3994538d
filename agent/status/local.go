package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

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

// maxAnswer limits the answer of an agent.
const maxAnswer = 64 << 20

// Ask sends a request to the agent of a state directory. in, unless nil, is the body, and out, unless nil,
// receives the answer, both as JSON. It returns ErrNotRunning, ErrDenied or ErrUntrusted, the error of the
// agent, or the error of ctx.
func Ask(ctx context.Context, dir, method, path string, in, out any) error {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, &body)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, dir) }}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return explain(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	switch {
	case err != nil:
		return fmt.Errorf("the agent does not answer: %w", err)
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("the agent answers: %s", strings.TrimSpace(string(text)))
	case out == nil:
		return nil
	}

	return json.Unmarshal(text, out)
}

func dial(ctx context.Context, dir string) (net.Conn, error) {
	d, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", address(d).Name)
	if err != nil {
		return nil, err
	}
	if err := checkPeer(c.(*net.UnixConn)); err != nil {
		return nil, errors.Join(err, c.Close())
	}

	return c, nil
}

// explain rewrites a connection error for users.
func explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return ErrNotRunning
	case errors.Is(err, fs.ErrPermission):
		return ErrDenied
	default:
		return fmt.Errorf("cannot ask the agent: %w", errors.Unwrap(err))
	}
}

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
