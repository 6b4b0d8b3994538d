package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/musterfleet/muster/model"
)

// newClient makes the client that is used when none is given.
func newClient() *http.Client {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: defaultStall, TLSHandshakeTimeout: 15 * time.Second}

	return &http.Client{Timeout: 10 * time.Minute, Transport: transport, CheckRedirect: noDowngrade}
}

// noDowngrade refuses a redirect that would give up encryption.
func noDowngrade(req *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= 10:
		return errors.New("more than 10 redirects")
	case via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https":
		return errors.New("redirected from https to " + req.URL.Scheme)
	default:
		return nil
	}
}

// openHTTP asks for a URL. What it says of it never holds credentials: neither
// those before the host nor the query.
func (l *Loader) openHTTP(ctx context.Context, source string) (*opened, error) {
	u, err := url.Parse(source)
	if err != nil || u.Host == "" {
		// The parser's own words may hold a part of a password.
		return nil, fmt.Errorf("%w: the URL cannot be read: percent-encode what is special in it, such as / or @ in a password", ErrSource)
	}
	name := u.Scheme + "://" + u.Host + u.EscapedPath()
	ctx, cancel := context.WithCancelCause(ctx)
	body := &stalling{ended: func() error { return context.Cause(ctx) }, cancel: cancel, limit: l.opts.HTTPStall}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, source, nil)
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("%w: %s", ErrSource, name)
	}
	// A packed answer would be unpacked on the way and no longer be the bundle that was published.
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := l.opts.HTTP.Do(req)
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("%s: %w", name, withoutCredentials(u, err))
	}
	body.ReadCloser = resp.Body
	if resp.StatusCode != http.StatusOK {
		_ = body.Close()
		return nil, fmt.Errorf("%s: the server answered %s", name, resp.Status)
	}
	if resp.ContentLength > l.opts.MaxBundleBytes {
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
}

// Read reads, for as long as the limit allows.
func (s *stalling) Read(b []byte) (int, error) {
	timer := time.AfterFunc(s.limit, func() { s.cancel(fmt.Errorf("nothing came for %s", s.limit)) })
	n, err := s.ReadCloser.Read(b)
	timer.Stop()
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

// withoutCredentials gives the cause of a client's error without the URL in it.
func withoutCredentials(u *url.URL, err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	secrets := []model.Secret{model.NewSecret(u.RawQuery)}
	if password, ok := u.User.Password(); ok {
		secrets = append(secrets, model.NewSecret(password), model.NewSecret(u.User.String()))
	}
	for _, values := range u.Query() {
		for _, v := range values {
			secrets = append(secrets, model.NewSecret(v))
		}
	}
	if text := model.NewRedactor(secrets...).Redact(err.Error()); text != err.Error() {
		return errors.New(text)
	}

	return err
}
