package manifest

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/musterfleet/muster/resources/host/web"
)

// The bounds of fetching a document or bundle.
const (
	fetchTimeout  = 10 * time.Minute
	headerTimeout = 30 * time.Second
)

// newClient makes the client that is used when none is given.
func newClient() *http.Client {
	return web.NewClient(web.Options{Timeout: fetchTimeout, HeaderTimeout: headerTimeout})
}

// openHTTP asks for a URL. What it says of it never holds credentials: neither
// those before the host nor the query.
func (l *Loader) openHTTP(ctx context.Context, source string) (*opened, error) {
	req, secrets, err := web.NewRequest(ctx, source)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	name := web.Name(req.URL)
	resp, err := l.opts.HTTP.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, web.WithoutCredentials(err, secrets...))
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s: the server answered %s", name, resp.Status)
	}
	if resp.ContentLength > l.opts.MaxBundleBytes {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s: %w: %d bytes", name, ErrTooLarge, resp.ContentLength)
	}

	return &opened{name: name, ReadCloser: resp.Body}, nil
}
