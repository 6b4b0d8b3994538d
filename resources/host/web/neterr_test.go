package web_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/web"
)

// TestWordsOfTheTransport has errors whose first part decides.
func TestWordsOfTheTransport(t *testing.T) {
	for text, want := range map[string]string{
		"http: server closed idle connection": "the server closed the connection",
		"readLoopPeekFailLocked: %!w(<nil>)":  "the server does not speak HTTP",
	} {
		if got := web.DescribeNetworkError(&url.Error{Op: "Get", URL: "http://x", Err: errors.New(text)}); !strings.HasSuffix(got, ": "+want) {
			t.Errorf("%s became %q", text, got)
		}
	}
}

// TestWordsOfAnAddressInUse: no connection was made.
func TestWordsOfAnAddressInUse(t *testing.T) {
	var listen net.ListenConfig
	l, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = listen.Listen(t.Context(), "tcp", l.Addr().String())
	if err == nil {
		t.Fatal("two listen on one address")
	}
	if got := web.DescribeNetworkError(err); got != "cannot listen on "+l.Addr().String()+": address already in use" {
		t.Error(got)
	}
}

// TestWordsKeepOthers has errors that are not of the network.
func TestWordsKeepOthers(t *testing.T) {
	for _, err := range []error{errors.New("x"), tls.AlertError(40), errors.New("redirected from https to http"), fmt.Errorf("a.yaml: %w", io.EOF)} {
		if got := web.DescribeNetworkError(err); got != err.Error() {
			t.Errorf("%q became %q", err, got)
		}
	}
}
