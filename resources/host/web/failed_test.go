package web_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/resources/host/web"
	"github.com/musterfleet/muster/testing/loopback"
)

// TestFailed has servers that are none, or of another kind: what failed and what to
// do about it is shown without the words of Go.
func TestFailed(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	closed := loopback.Address(t).String()
	mute := listen(t, func(net.Conn) {})
	for name, c := range map[string]struct{ url, want string }{
		"nothing listens": {"http://" + closed, "connection refused by " + closed + " (no server runs there, or a firewall or proxy is in the way)"},
		"no such host":    {"http://nowhere.invalid", "cannot resolve nowhere.invalid: "},
		"no TLS":          {"https://" + plain.Listener.Addr().String(), "the server does not speak TLS (write the URL without TLS, or correct the port)"},
		"TLS":             {secure.URL, "its certificate is not trusted: certificate signed by unknown authority (install"},
		"another service": {"http://" + listen(t, func(c net.Conn) { _, _ = c.Write([]byte("SSH-2.0-x\r\n\r\n")) }), "the server does not speak HTTP (correct the port)"},
		"NATS":            {"http://" + listen(t, func(c net.Conn) { _, _ = c.Write([]byte("INFO {\"a\":1}\r\n\r\n")) }), "the server does not speak HTTP (correct the port)"},
		"it hangs up":     {"http://" + listen(t, func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() }), "the server closed the connection"},
		"it is mute":      {"http://" + mute, "no answer in time"},
		"no port":         {"http://127.0.0.1:99999", "invalid port: 99999 (ports are 1 to 65535)"},
	} {
		t.Run(name, func(t *testing.T) {
			patience := time.Minute
			if name == "it is mute" {
				patience = 50 * time.Millisecond
			}
			_, err := web.NewClient(web.Options{Timeout: patience}).Get(c.url + "/x?token=s3cret")
			if err == nil {
				t.Fatal("no error")
			}
			u, _ := url.Parse(c.url + "/x?token=s3cret")
			got := web.Failed(u, err)
			if text := got.Error(); !strings.HasPrefix(text, c.url+"/x: "+c.want) || strings.Contains(text, "s3cret") || strings.Contains(text, "tcp") {
				t.Errorf("%q\nfrom %q, want %q", text, err, c.want)
			}
		})
	}
}

// listen returns the address of a server that serves its connections so, once a
// request begins.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var open []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				for _, c := range open {
					_ = c.Close()
				}
				return
			}
			// An answer before the request is another error of Go, by chance.
			_, _ = c.Read(make([]byte, 1))
			serve(c)
			open = append(open, c)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})

	return l.Addr().String()
}
