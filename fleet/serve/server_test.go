package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/testing/natstest"
)

var errOver = errors.New("the test is over")

// serving serves until the test ends, and returns the address.
func serving(t *testing.T, o access.Options, p patience, h http.Handler) string {
	t.Helper()
	o.Listen = "127.0.0.1:0"
	g, err := access.New(o, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l, err := g.Listen(t.Context(), MaxConnections)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(context.WithoutCancel(t.Context()))
	done := make(chan error)
	go func() { done <- serve(ctx, l, h, p, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		stop(errOver)
		if err := <-done; !errors.Is(err, errOver) {
			t.Error(err)
		}
	})

	return l.Addr().String()
}

func proto(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }

// TestBrowsersWithTLS: they speak HTTP/2 where there is TLS.
func TestBrowsersWithTLS(t *testing.T) {
	t.Parallel()
	authority := natstest.NewAuthority(t)
	cert, key := authority.Issue(t, "muster")
	address := serving(t, access.Options{Certificate: cert, Key: key}, defaultPatience(), http.HandlerFunc(proto))
	pem, err := os.ReadFile(filepath.Clean(authority.CA))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	response, err := client.Get("https://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || string(text) != "HTTP/2.0" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestPatience: a client that sends no body, or reads no answer, cannot hold a connection.
func TestPatience(t *testing.T) {
	t.Parallel()
	short := patience{header: time.Minute, body: 100 * time.Millisecond, answer: time.Minute, idle: 100 * time.Millisecond}
	address := serving(t, access.Options{}, short, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/read" {
			_, _ = io.ReadAll(r.Body)
		}
		proto(w, r)
	}))
	for _, request := range []string{"GET / HTTP/1.1\r\nContent-Length: 9", "GET / HTTP/1.1\r\nTransfer-Encoding: chunked", "POST /read HTTP/1.1\r\nContent-Length: 9"} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, request+"\r\nHost: localhost\r\n\r\n")
		if _, err := io.ReadAll(c); err != nil {
			t.Errorf("%s: %v", request, err)
		}
	}

	short = patience{header: time.Minute, body: time.Minute, answer: 100 * time.Millisecond, idle: time.Minute}
	failed := make(chan error)
	address = serving(t, access.Options{}, short, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := io.WriteString(w, strings.Repeat("x", 1<<20)); err != nil {
				failed <- err
				return
			}
		}
	}))
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}
