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
	// maxTries is how often in a row a transfer may break without getting further.
	maxTries = 5
	// maxPause is the longest pause between tries, whatever the server asks for.
	maxPause = 30 * time.Second
	// stretch is how much of what was there before a connection has to give anew
	// for that to be progress.
	stretch = 64 << 10
)

// errRestart is a transfer that has to begin anew: what has been written is of no use.
var errRestart = errors.New("the transfer restarts")

// errStalled is a connection that is given up, to try another one.
var errStalled = errors.New("the connection stalled")

// transferError is what went wrong with a transfer, told from what went wrong
// with the file it is written to.
type transferError struct{ error }

// Unwrap returns the error itself.
func (e transferError) Unwrap() error { return e.error }

// transfer is the content of a URL on its way, over as many connections as that
// takes. It is used by one goroutine.
type transfer struct {
	opts    Options
	log     *slog.Logger
	request *nethttp.Request
	// secrets are what no log may show of it.
	secrets []model.Secret
	// timeout is how long it waits for the server without any progress.
	timeout time.Duration
	began   time.Time
	// finish gets the checksum of the whole; its error fails the transfer.
	finish func(checksum string) error

	conn *connection
	// total is the length of the whole content, -1 when it is not known.
	total int64
	// validator is what the content can be told from any other by, empty when it cannot.
	validator string
	// at is how much has been read of the content, furthest the most it ever was.
	at, furthest int64
	// again is what has been read, since the last progress, of what was there before.
	again int64
	// waited is the time without progress up to since, when it began to wait again.
	waited time.Duration
	since  time.Time
	tries  int
	sum    hash.Hash
	logged time.Time
}

// start begins anew at the first byte. A connection that already stands there is taken.
func (t *transfer) start(ctx context.Context) error {
	t.at, t.sum = 0, sha256.New()
	if t.conn != nil {
		return nil
	}

	return t.persist(ctx, func() error { return t.connect(ctx) })
}

// readerFunc is a function that reads.
type readerFunc func(b []byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// reader reads the content to its end. Its error is errRestart or a transferError.
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

// read reads from the connection, and makes another one where that is gone.
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
		t.tell(ctx)
		return n, nil
	}
	if errors.Is(err, io.EOF) && t.total >= 0 && t.at != t.total {
		err = io.ErrUnexpectedEOF
	}

	return 0, err
}

// count takes note of what has been read, and of whether that is progress.
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

// left is how long there may be no progress yet.
func (t *transfer) left() time.Duration { return t.timeout - t.waited - time.Since(t.since) }

// patience is how long a connection may give nothing: another one has a chance, too.
func (t *transfer) patience() time.Duration { return min(t.timeout/2, t.left()) }

// tell logs from time to time how far the transfer is.
func (t *transfer) tell(ctx context.Context) {
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

// persist tries until something comes of it, or it is not worth another try.
// What happens in between, such as writing to a slow disk, is no waiting.
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
		// The words of the client may hold what the log must not show.
		t.log.InfoContext(ctx, "download interrupted, retrying", "url", web.Name(t.request.URL), "bytes", t.at, "error", web.WithoutCredentials(err, t.secrets...).Error(), "pause", pause.String())
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// statusError is an answer that is no content.
type statusError struct {
	status string
	code   int
	// after is how long the server asks to be left alone.
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

// isFinal reports whether trying again would come to the same.
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
