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
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
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

func isFinal(err error) bool {
	var status statusError
	if errors.As(err, &status) {
		return !slices.Contains([]int{408, 425, 429, 500, 502, 503, 504}, status.code)
	}
	var certificate *tls.CertificateVerificationError
	var plain tls.RecordHeaderError

	return errors.As(err, &certificate) || errors.As(err, &plain) || errors.Is(err, files.ErrTooLarge) || web.RedirectError(err) != nil
}

// connection is a response during its transfer.
type connection struct {
	body    io.ReadCloser
	cancel  context.CancelFunc
	stalled *atomic.Bool
	watch   *time.Timer
}

// dial sends a request. It cancels the request if the response takes longer than patience.
func dial(client *http.Client, req *http.Request, patience time.Duration) (*connection, *http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	c := &connection{cancel: cancel, stalled: &atomic.Bool{}}
	c.watch = time.AfterFunc(patience, func() {
		c.stalled.Store(true)
		cancel()
	})
	resp, err := client.Do(req.WithContext(ctx))
	c.watch.Stop()
	if err != nil {
		cancel()
		if refused := web.RedirectError(err); refused != nil {
			return nil, nil, refused
		}
		return nil, nil, c.cause(err)
	}
	c.body = resp.Body

	return c, resp, nil
}

// read reads from the response. It cancels a stalled connection.
func (c *connection) read(b []byte, patience time.Duration) (int, error) {
	c.watch.Reset(patience)
	defer c.watch.Stop()
	n, err := c.body.Read(b)

	return n, c.cause(err)
}

// cause returns errStalled for the errors of a cancelled connection.
func (c *connection) cause(err error) error {
	if err != nil && err != io.EOF && c.stalled.Load() {
		return errStalled
	}

	return err
}

func (c *connection) close() {
	c.watch.Stop()
	c.cancel()
	_ = c.body.Close()
}

// identity identifies the content that a server sends in one response.
type identity struct {
	// total is the length, -1 when unknown.
	total int64
	// validator identifies the content; it may be empty.
	validator string
}

// identityOf returns the identity of a response. The validator is a strong ETag, or a date that is too old
// for a second change at the same date.
func identityOf(resp *http.Response) identity {
	out := identity{total: resp.ContentLength}
	if resp.Header.Get("Accept-Ranges") == "none" {
		return out
	}
	tag := resp.Header.Get("ETag")
	if strings.HasPrefix(tag, `"`) {
		out.validator = tag
		return out
	}
	changed, err := http.ParseTime(resp.Header.Get("Last-Modified"))
	now, noDate := http.ParseTime(resp.Header.Get("Date"))
	if tag == "" && err == nil && noDate == nil && now.Sub(changed) >= time.Minute {
		out.validator = resp.Header.Get("Last-Modified")
	}

	return out
}

// continues reports whether a response is the rest of the same content. It must have the same
// validator.
func (i *identity) continues(resp *http.Response, at int64) bool {
	header := "Last-Modified"
	if strings.HasPrefix(i.validator, `"`) {
		header = "ETag"
	}
	if resp.StatusCode != http.StatusPartialContent || resp.Header.Get(header) != i.validator {
		return false
	}
	var first, last, total int64 = -1, -1, -1
	given := resp.Header.Get("Content-Range")
	if _, err := fmt.Sscanf(given, "bytes %d-%d/%d", &first, &last, &total); err != nil && !strings.HasSuffix(given, "/*") {
		return false
	}
	if i.total < 0 {
		i.total = total
	}

	return first == at && (total < 0 || total == i.total)
}

const (
	// leastRate is the minimum rate in bytes per second that counts as progress.
	leastRate = 1 << 10
	// stretch is the amount of repeated content that counts as progress.
	stretch = 64 << 10
)

// pace measures the wait for a server. Time between waits does not count, such as writing to a slow disk.
type pace struct {
	// timeout is the longest wait for progress: leastRate times that long.
	timeout time.Duration
	// waited is the time without progress up to since, when the current wait began.
	waited time.Duration
	since  time.Time
	// fresh and again count new and repeated bytes since the last progress.
	fresh, again int64
}

func (p *pace) begin() { p.since = time.Now() }

func (p *pace) end() { p.waited += time.Since(p.since) }

// count records n bytes; fresh of them are new.
func (p *pace) count(n, fresh int64) {
	p.fresh += fresh
	p.again += n - fresh
	if float64(p.fresh) >= leastRate*p.timeout.Seconds() || p.again >= stretch {
		p.fresh, p.again, p.waited, p.since = 0, 0, 0, time.Now()
	}
}

// left is the remaining time without progress.
func (p *pace) left() time.Duration { return p.timeout - p.waited - time.Since(p.since) }

// patience returns how long a connection may stall. The rest of the time is left for a new connection.
func (p *pace) patience() time.Duration { return min(p.timeout/2, p.left()) }

// check returns an error after the timeout. cause is the error that broke the connection, nil while the
// server still sends.
func (p *pace) check(cause error) error {
	switch {
	case p.left() > 0:
		return nil
	case cause == nil || p.fresh > 0:
		return fmt.Errorf("timed out after %s with less than %d KiB a second", p.timeout, leastRate>>10)
	default:
		return fmt.Errorf("timed out after %s without progress: %w", p.timeout, cause)
	}
}

// log writes the events of a download, without credentials.
type log struct {
	*slog.Logger
	url     string
	secrets []model.Secret
	// every is the interval of progress messages.
	every         time.Duration
	began, logged time.Time
}

func (l *log) progress(ctx context.Context, at, total int64) {
	if l.logged.IsZero() {
		l.logged = l.began
	}
	if time.Since(l.logged) < l.every {
		return
	}
	l.logged = time.Now()
	args := []any{"url", l.url, "bytes", at}
	if total > 0 {
		args = append(args, "of", total, "percent", 100*at/total)
	}
	l.InfoContext(ctx, "downloading", args...)
}

// retry logs a failed try. The client's error may hold secrets.
func (l *log) retry(ctx context.Context, at int64, err error, pause time.Duration) {
	l.InfoContext(ctx, "download interrupted, retrying", "url", l.url, "bytes", at, "error", web.WithoutCredentials(err, l.secrets...).Error(), "pause", pause.String())
}
