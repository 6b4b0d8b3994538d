package archive

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/web"
)

const (
	// maxTries is the maximum number of consecutive failures without progress.
	maxTries = 5
	// maxPause is the longest pause between tries, even if the server requests a longer one.
	maxPause = 30 * time.Second
)

// errRestart means that the transfer must restart: the written bytes are useless.
var errRestart = errors.New("the transfer restarts")

// errStalled means that the connection stalled and a new one is needed.
var errStalled = errors.New("the connection stalled")

// transferError is an error of the transfer, not of the written file.
type transferError struct{ error }

// Unwrap returns the error itself.
func (e transferError) Unwrap() error { return e.error }

// transfer reads the content of a URL over as many connections as needed, in one goroutine.
type transfer struct {
	client  *http.Client
	request *http.Request
	// max limits the content.
	max model.Size
	// backoff is the pause before the second try.
	backoff time.Duration
	log     log

	conn    *connection
	content identity
	// at counts the bytes read, furthest is its maximum.
	at, furthest int64
	sum          hash.Hash
	pace         pace
	tries        int
}

// start restarts at the first byte, over an open connection if there is one.
func (t *transfer) start(ctx context.Context) error {
	t.at, t.sum = 0, sha256.New()
	if t.conn != nil {
		return nil
	}

	return t.persist(ctx, func() error { return t.connect(ctx) })
}

// connect requests the missing part. If the server can only send everything, it returns errRestart, with the
// connection of a complete response, if any.
func (t *transfer) connect(ctx context.Context) error {
	if t.at > 0 && t.content.validator == "" {
		return errRestart
	}
	req := t.request.Clone(ctx)
	if t.at > 0 {
		// With If-Range the server sends everything when the content changed.
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", t.at))
		req.Header.Set("If-Range", t.content.validator)
	}
	c, resp, err := dial(t.client, req, t.pace.patience())
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusOK:
		t.conn, t.content = c, identityOf(resp)
		switch {
		case t.content.total > int64(t.max):
			return fmt.Errorf("%w: the server offers %d bytes, max_size is %s", files.ErrTooLarge, t.content.total, t.max)
		case t.at > 0:
			return errRestart
		}
		return nil
	case t.at > 0 && t.content.continues(resp, t.at):
		t.conn = c
		return nil
	}
	c.close()
	if code := resp.StatusCode; t.at > 0 && slices.Contains([]int{http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable, http.StatusPreconditionFailed}, code) {
		return errRestart
	}

	return statusOf(resp)
}

// readerFunc is an io.Reader.
type readerFunc func(b []byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// reader returns the content. Its errors are errRestart or a transferError, also
// for the error of complete, which gets the checksum.
func (t *transfer) reader(ctx context.Context, complete func(checksum string) error) io.Reader {
	return readerFunc(func(b []byte) (n int, err error) {
		err = t.persist(ctx, func() error {
			n, err = t.read(ctx, b)
			return err
		})
		if errors.Is(err, io.EOF) {
			if err := complete(hex.EncodeToString(t.sum.Sum(nil))); err != nil {
				return 0, transferError{err}
			}
			return 0, io.EOF
		}
		return n, err
	})
}

// read reads from the connection, and opens a new connection if it broke.
func (t *transfer) read(ctx context.Context, b []byte) (int, error) {
	if t.conn == nil {
		if err := t.connect(ctx); err != nil {
			return 0, err
		}
	}
	n, err := t.conn.read(b, t.pace.patience())
	if n == 0 {
		if errors.Is(err, io.EOF) && t.content.total >= 0 && t.at != t.content.total {
			err = io.ErrUnexpectedEOF
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = web.CutShort(t.at, t.content.total)
		}
		return 0, err
	}
	t.sum.Write(b[:n])
	t.at += int64(n)
	fresh := max(t.at-t.furthest, 0)
	if fresh > 0 {
		t.furthest, t.tries = t.at, 0
	}
	t.pace.count(int64(n), min(fresh, int64(n)))
	t.log.progress(ctx, t.at, t.content.total)
	if t.at > int64(t.max) {
		return 0, fmt.Errorf("%w: the server sends more than max_size, %s", files.ErrTooLarge, t.max)
	}
	if err := t.pace.check(nil); err != nil {
		return 0, transferError{err}
	}

	return n, nil
}

// persist retries until a try succeeds or more tries are pointless.
func (t *transfer) persist(ctx context.Context, try func() error) error {
	t.pace.begin()
	defer t.pace.end()
	for {
		err := try()
		if err == nil || errors.Is(err, io.EOF) || errors.Is(err, errRestart) {
			return err
		}
		t.close()
		t.tries++
		if context.Cause(ctx) != nil {
			return transferError{context.Cause(ctx)}
		}
		if late := t.pace.check(err); late != nil {
			return transferError{late}
		}
		if isFinal(err) || t.tries >= maxTries {
			return transferError{err}
		}
		pause := min(max(t.backoff<<(t.tries-1), retryAfter(err)), maxPause, t.pace.left())
		t.log.retry(ctx, t.at, err, pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (t *transfer) close() {
	if t.conn != nil {
		t.conn.close()
	}
	t.conn = nil
}

// statusError is a response without content.
type statusError struct {
	status string
	code   int
	// after is the server's Retry-After.
	after time.Duration
}

func (e statusError) Error() string { return "the server answered " + e.status }

func statusOf(resp *http.Response) statusError {
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))

	return statusError{status: resp.Status, code: resp.StatusCode, after: time.Duration(max(seconds, 0)) * time.Second}
}

func retryAfter(err error) time.Duration {
	var status statusError
	errors.As(err, &status)

	return status.after
}

// isFinal reports whether a retry would fail in the same way.
func isFinal(err error) bool {
	var status statusError
	if errors.As(err, &status) {
		return !slices.Contains([]int{408, 425, 429, 500, 502, 503, 504}, status.code)
	}
	var certificate *tls.CertificateVerificationError
	var plain tls.RecordHeaderError

	return errors.As(err, &certificate) || errors.As(err, &plain) || errors.Is(err, files.ErrTooLarge) || web.RedirectError(err) != nil
}
