package http

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	nethttp "net/http"
	"slices"
	"strconv"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/web"
)

const (
	// maxTries is how often in a row a transfer may break without progress.
	maxTries = 5
	// maxPause is the longest pause between tries, whatever the server requests.
	maxPause = 30 * time.Second
	// stretch is how much of the known content a new connection must repeat before
	// that is progress.
	stretch = 64 << 10
)

// errRestart is a transfer that must restart: what was written is useless.
var errRestart = errors.New("the transfer restarts")

// errStalled is a connection that is given up for another one.
var errStalled = errors.New("the connection stalled")

// transferError is an error of the transfer, rather than of the written file.
type transferError struct{ error }

// Unwrap returns the error itself.
func (e transferError) Unwrap() error { return e.error }

// transfer reads the content of a URL over as many connections as needed, in
// one goroutine.
type transfer struct {
	opts    Options
	log     *slog.Logger
	request *nethttp.Request
	// secrets must not be logged.
	secrets []model.Secret
	// timeout bounds the wait for the server without progress.
	timeout time.Duration
	began   time.Time
	// finish gets the checksum of the content; its error fails the transfer.
	finish func(checksum string) error

	conn *connection
	// total is the content length, -1 when unknown.
	total int64
	// validator identifies the content, empty when nothing does.
	validator string
	// at counts the bytes read, furthest is its maximum.
	at, furthest int64
	// again counts repeated bytes since the last progress.
	again int64
	// waited is the time without progress up to since, when the current wait
	// began.
	waited time.Duration
	since  time.Time
	tries  int
	sum    hash.Hash
	logged time.Time
}

// start restarts at the first byte, over an open connection if there is one.
func (t *transfer) start(ctx context.Context) error {
	t.at, t.sum = 0, sha256.New()
	if t.conn != nil {
		return nil
	}

	return t.persist(ctx, func() error { return t.connect(ctx) })
}

// readerFunc is an io.Reader.
type readerFunc func(b []byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// reader returns the content. Its errors are errRestart or a transferError.
func (t *transfer) reader(ctx context.Context) io.Reader {
	return readerFunc(func(b []byte) (n int, err error) {
		err = t.persist(ctx, func() error {
			n, err = t.read(ctx, b)
			return err
		})
		if errors.Is(err, io.EOF) {
			if err := t.finish(hex.EncodeToString(t.sum.Sum(nil))); err != nil {
				return 0, transferError{err}
			}
			return 0, io.EOF
		}
		return n, err
	})
}

// read reads from the connection, and makes another one when it is gone.
func (t *transfer) read(ctx context.Context, b []byte) (int, error) {
	if t.conn == nil {
		if err := t.connect(ctx); err != nil {
			return 0, err
		}
	}
	n, err := t.conn.read(b, t.patience())
	if n > 0 {
		t.sum.Write(b[:n])
		t.count(int64(n))
		t.logProgress(ctx)
		return n, nil
	}
	if errors.Is(err, io.EOF) && t.total >= 0 && t.at != t.total {
		err = io.ErrUnexpectedEOF
	}

	return 0, err
}

// count records read bytes and progress.
func (t *transfer) count(n int64) {
	t.at += n
	t.again += n
	switch {
	case t.at > t.furthest:
		t.furthest, t.tries = t.at, 0
	case t.again < stretch:
		return
	}
	t.again, t.waited, t.since = 0, 0, time.Now()
}

// left is the remaining time without progress.
func (t *transfer) left() time.Duration { return t.timeout - t.waited - time.Since(t.since) }

// patience is how long a connection may stall: another one gets a chance too.
func (t *transfer) patience() time.Duration { return min(t.timeout/2, t.left()) }

// logProgress logs the progress from time to time.
func (t *transfer) logProgress(ctx context.Context) {
	if t.logged.IsZero() {
		t.logged = t.began
	}
	if time.Since(t.logged) < t.opts.Progress {
		return
	}
	t.logged = time.Now()
	args := []any{"url", web.Name(t.request.URL), "bytes", t.at}
	if t.total > 0 {
		args = append(args, "of", t.total, "percent", 100*t.at/t.total)
	}
	t.log.InfoContext(ctx, "downloading", args...)
}

// persist retries until a try succeeds or another one is pointless. Time
// between tries, such as writing to a slow disk, is not counted as waiting.
func (t *transfer) persist(ctx context.Context, try func() error) error {
	t.since = time.Now()
	defer func() { t.waited += time.Since(t.since) }()
	for {
		err := try()
		if err == nil || errors.Is(err, io.EOF) || errors.Is(err, errRestart) {
			return err
		}
		t.close()
		t.tries++
		switch {
		case context.Cause(ctx) != nil:
			return transferError{context.Cause(ctx)}
		case t.left() <= 0:
			return transferError{fmt.Errorf("timed out after %s without progress: %w", t.timeout, err)}
		case isFinal(err) || t.tries >= maxTries:
			return transferError{err}
		}
		pause := min(max(t.opts.Backoff<<(t.tries-1), retryAfter(err)), maxPause, t.left())
		// The client's error may hold secrets.
		t.log.InfoContext(ctx, "download interrupted, retrying", "url", web.Name(t.request.URL), "bytes", t.at, "error", web.WithoutCredentials(err, t.secrets...).Error(), "pause", pause.String())
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// statusError is a response without content.
type statusError struct {
	status string
	code   int
	// after is the server's Retry-After.
	after time.Duration
}

func (e statusError) Error() string { return "the server answered " + e.status }

func statusOf(resp *nethttp.Response) statusError {
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

	return errors.As(err, &certificate) || errors.As(err, &plain) || web.RedirectError(err) != nil
}

func (t *transfer) close() {
	if t.conn != nil {
		t.conn.close()
	}
	t.conn = nil
}
