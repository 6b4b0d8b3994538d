package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/musterfleet/muster/fleet/web/page"
)

// content is the part of a page that is updated, as of a time.
type content struct {
	templ.Component
	// status is that of HTTP.
	status int
	// final means that it does not change any more.
	final bool
}

// shown is content that there is.
func shown(c templ.Component) (content, error) {
	return content{Component: c, status: http.StatusOK}, nil
}

// screen is a page as it was asked for.
type screen struct {
	page.Frame
	// controls are above the content; they are what the person fills in, and are not updated.
	controls templ.Component
	// content reads and draws. The error is why it cannot be shown now.
	content func(ctx context.Context, now time.Time) (content, error)
	// live means that the content is updated.
	live bool
	// pace is the least time between two updates, zero is that of most pages.
	pace time.Duration
	// changes tells when the content may be another one; nil is when the fleet changed.
	changes func() (changed <-chan struct{}, cancel func())
}

// builder returns the page that a request asks for.
type builder func(r *http.Request) screen

// fresh is how old content may be of a page that is loaded: so many browsers cost as much as one.
const fresh = time.Second

// timeout is how long drawing a page may take that asks its source.
const timeout = 10 * time.Second

// maxURL is how many bytes of a URL are taken: content is kept by it. A target expression fits in, escaped.
const maxURL = 32 << 10

// serve serves a page, and its updates at the same URL to those who ask for a stream of events.
func (s *site) serve(build builder) http.Handler {
	whole := compressed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := build(r)
		f, err := s.fragment(r.Context(), r, v, s.Now().Add(-fresh))
		if err != nil {
			return // whoever asked is gone
		}
		v.Frame = s.framed(r, v.Frame)
		v.Now, v.Stream = f.at, ""
		if v.live && f.status == http.StatusOK && !f.final {
			v.Stream = streamURL(r, f)
		}
		var out bytes.Buffer
		if err := page.Layout(v.Frame, v.controls, f.html).Render(r.Context(), &out); err != nil {
			s.sparse.Log(r.Context(), s.Log, slog.LevelError, "cannot draw a page", "path", r.URL.Path, "error", err)
			http.Error(w, "the page cannot be drawn", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Add("Vary", "Accept")
		w.WriteHeader(f.status)
		// The error is that of a browser that went away.
		_, _ = io.WriteString(w, page.Visible(out.String()))
	}))

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.URL.RawQuery)+len(r.URL.Path) > maxURL {
			http.Error(w, "the URL is too long", http.StatusRequestURITooLong)
			return
		}
		if !strings.HasPrefix(r.Header.Get("Accept"), "text/event-stream") {
			whole.ServeHTTP(w, r)
			return
		}
		v := build(r)
		if !v.live {
			http.Error(w, "this page is not updated", http.StatusNotFound)
			return
		}
		s.stream(w, r, v)
	})
}

// fragment returns the content of a page, drawn after a time.
func (s *site) fragment(ctx context.Context, r *http.Request, v screen, after time.Time) (fragment, error) {
	return s.fragments.get(ctx, keyOf(r, s.may(r).May), after, func(now time.Time) drawn {
		// Others may wait for the same content: it does not end with the one who asked first.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		c, err := v.content(ctx, now)
		if err != nil {
			s.sparse.Log(r.Context(), s.Log, slog.LevelWarn, "cannot show a page", "path", r.URL.Path, "error", err)
			c = content{Component: page.Problem(plain(err)), status: http.StatusServiceUnavailable}
		}
		var out bytes.Buffer
		// Where it took too long, that is what is drawn.
		if err := c.Render(context.WithoutCancel(ctx), &out); err != nil {
			s.sparse.Log(r.Context(), s.Log, slog.LevelError, "cannot draw a page", "path", r.URL.Path, "error", err)
			return drawn{status: http.StatusInternalServerError}
		}

		return drawn{page.Visible(out.String()), c.status, c.final}
	})
}

// plain returns an error for people.
func plain(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "NATS did not answer in time"
	}

	return err.Error()
}
