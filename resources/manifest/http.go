package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/musterfleet/muster/resources/host/web"
)

// fetchTimeout bounds the fetching of a document or bundle.
const fetchTimeout = 10 * time.Minute

// openHTTP asks for a URL. Its errors never hold credentials: neither
// those before the host nor the query.
func (f *fetcher) openHTTP(ctx context.Context, source string) (*opened, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	req, secrets, err := web.NewRequest(ctx, source)
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	name := web.Name(req.URL)
	resp, err := f.client.Do(req)
	if err != nil {
		cancel(nil)
		return nil, web.Failed(req.URL, err, secrets...)
	}
	body := &stalling{ReadCloser: resp.Body, ended: func() error { return context.Cause(ctx) }, cancel: cancel, limit: f.opts.HTTPStall, announced: resp.ContentLength}
	if resp.StatusCode != http.StatusOK {
		_ = body.Close()
		return nil, fmt.Errorf("%s: the server answered %s", name, resp.Status)
	}
	if resp.ContentLength > f.opts.MaxBundleBytes {
		_ = body.Close()
		return nil, fmt.Errorf("%s: %w: %d bytes", name, ErrTooLarge, resp.ContentLength)
	}

	return &opened{name: name, ReadCloser: body}, nil
}

// stalling is the body of an answer, which is given up when nothing of it comes
// for too long.
type stalling struct {
	io.ReadCloser
	ended  func() error
	cancel context.CancelCauseFunc
	limit  time.Duration
	// announced is the length of the answer, -1 if it is unknown; received counts its bytes.
	announced, received int64
}

// Read reads, for as long as the limit allows.
func (s *stalling) Read(b []byte) (int, error) {
	timer := time.AfterFunc(s.limit, func() { s.cancel(fmt.Errorf("nothing came for %s", s.limit)) })
	n, err := s.ReadCloser.Read(b)
	timer.Stop()
	s.received += int64(n)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = web.CutShort(s.received, s.announced)
	}
	if cause := s.ended(); err != nil && cause != nil {
		return n, cause
	}

	return n, err
}

// Close ends the request.
func (s *stalling) Close() error {
	err := s.ReadCloser.Close()
	s.cancel(nil)

	return err
}
