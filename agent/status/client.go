package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"

	"golang.org/x/sys/unix"
)

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

// dial connects to the socket in a state directory.
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
