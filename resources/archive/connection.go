package archive

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/musterfleet/muster/resources/host/web"
)

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
