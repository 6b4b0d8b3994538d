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

// content is the live part of a page at a time.
type content struct {
	templ.Component
	// status is the HTTP status.
	status int
	// final is set if the content does not change any more.
	final bool
}

// shown returns a successful content.
func shown(c templ.Component) (content, error) {
	return content{Component: c, status: http.StatusOK}, nil
}

// screen is a requested page.
type screen struct {
	page.Frame
	// controls are the inputs above the content, which are not updated.
	controls templ.Component
	// content reads and draws, or returns why that fails.
	content func(ctx context.Context, now time.Time) (content, error)
	// live is set if the content is updated.
	live bool
	// pace is the minimum time between updates, 0 for the default.
	pace time.Duration
	// changes signals changes of the content; nil means changes of the fleet.
	changes func() (changed <-chan struct{}, cancel func())
}

// builder returns the page of a request.
type builder func(r *http.Request) screen

// fresh is the maximum age of shared content for a new page, so that many browsers cost as much as one.
const fresh = time.Second

// timeout is the maximum time to draw a page that reads from its source.
const timeout = 10 * time.Second

// maxURL is the maximum length of a URL in bytes, because content is cached by URL. An escaped target expression fits.
const maxURL = 32 << 10

// serve serves a page, and its updates at the same URL as a stream of events.
func (s *site) serve(build builder) http.Handler {
	whole := compressed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := build(r)
		f, err := s.fragment(r.Context(), r, v, s.Now().Add(-fresh))
		if err != nil {
			return // the browser went away
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
		// ignore that the browser went away
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
		// Other requests may wait for the content, so it does not end with the first request.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		c, err := v.content(ctx, now)
		if err != nil {
			s.sparse.Log(r.Context(), s.Log, slog.LevelWarn, "cannot show a page", "path", r.URL.Path, "error", err)
			c = content{Component: page.Problem(plain(err)), status: http.StatusServiceUnavailable}
		}
		var out bytes.Buffer
		// After a timeout, the page shows the timeout.
		if err := c.Render(context.WithoutCancel(ctx), &out); err != nil {
			s.sparse.Log(r.Context(), s.Log, slog.LevelError, "cannot draw a page", "path", r.URL.Path, "error", err)
			return drawn{status: http.StatusInternalServerError}
		}

		return drawn{page.Visible(out.String()), c.status, c.final}
	})
}

// plain returns the text of an error for a page.
func plain(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "NATS did not answer in time"
	}

	return err.Error()
}
