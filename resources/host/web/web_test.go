package web_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/web"
)

func TestNewRequest(t *testing.T) {
	req, secrets, err := web.NewRequest(t.Context(), "https://joe:hunt%2Fer2@example.com/a.tgz?token=abc")
	if err != nil {
		t.Fatal(err)
	}
	user, password, _ := req.BasicAuth()
	if user != "joe" || password != "hunt/er2" || req.URL.User != nil || req.URL.RawQuery != "token=abc" || req.Header.Get("Accept-Encoding") != "identity" || len(secrets) != 5 {
		t.Errorf("it is %+v as %q, %q", req, user, password)
	}
	for _, source := range []string{"http://joe:hun/ter2@x/y", "http:///x", "", "x", "http://[bad/", "http://x/\x7f"} {
		if _, _, err := web.NewRequest(t.Context(), source); !errors.Is(err, web.ErrURL) {
			t.Errorf("%q: %v", source, err)
		}
	}
}

// TestRedirects has redirects with what arrives at their end.
func TestRedirects(t *testing.T) {
	seen := http.Header{}
	record := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Clone() })
	other := httptest.NewServer(record)
	defer other.Close()
	otherTLS := httptest.NewTLSServer(record)
	defer otherTLS.Close()
	var home *httptest.Server
	route := http.NewServeMux()
	route.Handle("/here", record)
	route.HandleFunc("/to-here", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/here", http.StatusFound) })
	route.HandleFunc("/to-other", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/there", http.StatusTemporaryRedirect)
	})
	route.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	home = httptest.NewServer(route)
	defer home.Close()
	secure := httptest.NewTLSServer(http.RedirectHandler(other.URL, http.StatusFound))
	defer secure.Close()

	get := func(client *http.Client, target string) error {
		req, _, err := web.NewRequest(t.Context(), strings.Replace(target, "://", "://joe:hunter2@", 1))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Private-Token", "abc")
		req.Header.Set("Range", "bytes=1-")
		seen = http.Header{}
		resp, err := client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	client := web.NewClient(web.Options{})
	if err := get(client, home.URL+"/to-here?token=abc"); err != nil || seen.Get("Authorization") == "" || seen.Get("Private-Token") == "" || seen.Get("Referer") != "" {
		t.Errorf("to the same host: %v, %v", seen, err)
	}
	if err := get(client, home.URL+"/to-other?token=abc"); err != nil || seen.Get("Authorization")+seen.Get("Private-Token")+seen.Get("Referer") != "" || seen.Get("Range") == "" {
		t.Errorf("to another host: %v, %v", seen, err)
	}
	if err := get(client, home.URL+"/loop"); !errors.Is(err, web.ErrRedirects) {
		t.Errorf("without end: %v", err)
	}
	trusting := secure.Client()
	trusting.CheckRedirect = web.CheckRedirect
	if err := get(trusting, secure.URL); !errors.Is(err, web.ErrDowngrade) || len(seen) > 0 {
		t.Errorf("from https to http: %v, %v", seen, err)
	}
}

// TestRedirectError has redirects that are not followed.
func TestRedirectError(t *testing.T) {
	for target, want := range map[string]error{
		"ftp://127.0.0.1/x": web.ErrScheme, "file:///etc/passwd": web.ErrScheme, "http:///x": web.ErrScheme,
		"http://[s3cret/": web.ErrLocation, "/": web.ErrRedirects,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", target)
			w.WriteHeader(http.StatusFound)
		}))
		req, _, err := web.NewRequest(t.Context(), server.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := web.NewClient(web.Options{}).Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		if got := web.RedirectError(err); got != want {
			t.Errorf("to %s: %v of %v, want %v", target, got, err, want)
		}
		server.Close()
	}
	if err := web.RedirectError(&url.Error{Err: errors.New("connection refused")}); err != nil {
		t.Errorf("another error: %v", err)
	}
}

// TestCheckRedirect has the credentials that survive each redirect.
func TestCheckRedirect(t *testing.T) {
	request := func(target string) *http.Request {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, target, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Basic abc")
		return req
	}
	for name, c := range map[string]struct {
		hops []string
		kept bool
	}{
		"the same host":       {[]string{"https://a.example/x", "https://a.example/y"}, true},
		"the same, encrypted": {[]string{"http://a.example/x", "https://a.example/y"}, true},
		"a subdomain":         {[]string{"https://example.com/x", "https://evil.example.com/y"}, false},
		"another port":        {[]string{"https://a.example/x", "https://a.example:8443/y"}, false},
		"there and back":      {[]string{"https://a.example/x", "https://b.example/y", "https://a.example/z"}, false},
	} {
		var via []*http.Request
		for _, hop := range c.hops[:len(c.hops)-1] {
			via = append(via, request(hop))
		}
		last := request(c.hops[len(c.hops)-1])
		if err := web.CheckRedirect(last, via); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if kept := last.Header.Get("Authorization") != ""; kept != c.kept {
			t.Errorf("%s: credentials kept: %t", name, kept)
		}
	}
}

func TestWithoutCredentials(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy:pr0xypass@127.0.0.1:1")
	t.Setenv("http_proxy", "user:0ther%zz@host")
	u, err := url.Parse("https://joe:hunter2@example.com/a.tgz?token=s3cret&x=verylong")
	if err != nil {
		t.Fatal(err)
	}
	if got := web.Name(u); got != "https://example.com/a.tgz" {
		t.Errorf("its name is %q", got)
	}
	cause := errors.New("joe:hunter2 hunter2 token=s3cret&x=verylong s3cret verylong proxy:pr0xypass pr0xypass 0ther%zz mine")
	got := web.WithoutCredentials(&url.Error{Op: "Get", URL: u.String(), Err: cause}, append(web.Secrets(u), model.NewSecret("mine"))...)
	if text := strings.TrimSpace(strings.ReplaceAll(got.Error(), model.Redacted, "")); text != "" {
		t.Errorf("%q is left", text)
	}
	token := &url.URL{Scheme: "https", User: url.User("ghp_token"), Host: "example.com"}
	if got := web.WithoutCredentials(errors.New("ghp_token"), web.Secrets(token)...); got.Error() != model.Redacted {
		t.Errorf("a user without a password: %v", got)
	}
	if err := web.WithoutCredentials(&url.Error{Op: "Get", URL: "x", Err: context.Canceled}); !errors.Is(err, context.Canceled) {
		t.Errorf("the cause is lost: %v", err)
	}
}
