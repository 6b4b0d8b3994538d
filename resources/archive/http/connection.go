package http

import (
	"context"
	"fmt"
	"io"
	nethttp "net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/musterfleet/muster/resources/host/web"
)

// connection is one response that is being read.
type connection struct {
	body    io.ReadCloser
	cancel  context.CancelFunc
	stalled *atomic.Bool
	watch   *time.Timer
}

// connect requests the missing part. When the server cannot send only that it
// returns errRestart, with the connection of a complete response, if any.
func (t *transfer) connect(ctx context.Context) error {
	if t.at > 0 && t.validator == "" {
		return errRestart
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &connection{cancel: cancel, stalled: &atomic.Bool{}}
	c.watch = time.AfterFunc(t.patience(), func() {
		c.stalled.Store(true)
		cancel()
	})
	resp, err := t.opts.Client.Do(t.next(ctx))
	c.watch.Stop()
	if err != nil {
		cancel()
		if refused := web.RedirectError(err); refused != nil {
			return refused
		}
		return c.cause(err)
	}
	c.body = resp.Body
	switch {
	case resp.StatusCode == nethttp.StatusOK:
		t.conn, t.total, t.validator = c, resp.ContentLength, validatorOf(resp)
		if t.at > 0 {
			return errRestart
		}
		return nil
	case t.at > 0 && t.continues(resp):
		t.conn = c
		return nil
	}
	c.close()
	if code := resp.StatusCode; t.at > 0 && (code == nethttp.StatusPartialContent || code == nethttp.StatusRequestedRangeNotSatisfiable || code == nethttp.StatusPreconditionFailed) {
		return errRestart
	}

	return statusOf(resp)
}

// next returns a request for the missing part. With If-Range the server sends
// everything when the content changed.
func (t *transfer) next(ctx context.Context) *nethttp.Request {
	req := t.request.Clone(ctx)
	if t.at > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", t.at))
		req.Header.Set("If-Range", t.validator)
	}

	return req
}

// continues reports whether a response continues the transfer with the same
// content.
func (t *transfer) continues(resp *nethttp.Response) bool {
	if resp.StatusCode != nethttp.StatusPartialContent {
		return false
	}
	var first, last, total int64 = -1, -1, -1
	given := resp.Header.Get("Content-Range")
	if _, err := fmt.Sscanf(given, "bytes %d-%d/%d", &first, &last, &total); err != nil && !strings.HasSuffix(given, "/*") {
		return false
	}
	if tag := resp.Header.Get("ETag"); tag != "" && strings.HasPrefix(t.validator, `"`) && tag != t.validator {
		return false
	}
	if t.total < 0 {
		t.total = total
	}

	return first == t.at && (total < 0 || total == t.total)
}

// validatorOf returns what identifies the content: a strong ETag, or a date too
// old for a second change at that date.
func validatorOf(resp *nethttp.Response) string {
	if resp.Header.Get("Accept-Ranges") == "none" {
		return ""
	}
	tag := resp.Header.Get("ETag")
	if strings.HasPrefix(tag, `"`) {
		return tag
	}
	changed, err := nethttp.ParseTime(resp.Header.Get("Last-Modified"))
	now, noDate := nethttp.ParseTime(resp.Header.Get("Date"))
	if tag != "" || err != nil || noDate != nil || now.Sub(changed) < time.Minute {
		return ""
	}

	return resp.Header.Get("Last-Modified")
}

// read reads from the response and gives up on a stalled connection.
func (c *connection) read(b []byte, patience time.Duration) (int, error) {
	c.watch.Reset(patience)
	defer c.watch.Stop()
	n, err := c.body.Read(b)

	return n, c.cause(err)
}

// cause returns errStalled for the errors of a connection that was given up.
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
