package access

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

// TestTheCookieIsNoToken checks that a cookie does not reveal the token, that signing out ends the session on the
// server, and that other cookies with the same name do not lock users out.
func TestTheCookieIsNoToken(t *testing.T) {
	t.Parallel()
	path, _, operate := tokens(t)
	g := guard(t, Options{Tokens: path})
	signIn := func() string {
		return cookieOf(t, g.do("POST", "/login", url.Values{"token": {operate}}), "muster").Value
	}
	first, second := signIn(), signIn()
	if strings.Contains(first, operate) || first == second || len(first) < 20 {
		t.Errorf("%s %s", first, second)
	}
	is(t, g.do("GET", "/", nil, "Authorization", "Bearer "+first), http.StatusUnauthorized, "sign in")
	is(t, g.do("GET", "/", nil, "Cookie", "muster="+operate), http.StatusUnauthorized, "sign in")
	for _, cookies := range []string{"muster=x; muster=" + first, "muster=" + first + "; muster=x", "muster=; muster=" + operate + "; muster=" + first, "__Host-muster=x; muster=" + first} {
		is(t, g.do("POST", "/", nil, "Cookie", cookies), http.StatusOK, "anna may operate")
	}
	g.do("POST", "/logout", nil, "Cookie", "muster=x; muster="+first)
	is(t, g.do("GET", "/", nil, "Cookie", "muster="+first), http.StatusUnauthorized, "sign in")
	is(t, g.do("GET", "/", nil, "Cookie", "muster="+second), http.StatusOK, "anna may operate")
	if _, ok := g.userOfSession(second, time.Now().Add(signedInFor)); ok {
		t.Error("the session does not end")
	}

	for range maxSessions {
		signIn()
	}
	is(t, g.do("GET", "/", nil, "Cookie", "muster="+second), http.StatusUnauthorized, "sign in")
	if n := len(g.sessions.all); n != maxSessions {
		t.Errorf("%d sessions", n)
	}

	third := signIn()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g.tokens.next = time.Time{}
	is(t, g.do("GET", "/", nil, "Cookie", "muster="+third), http.StatusUnauthorized, "sign in")
}

// TestSecureFollowsTheScheme tests that a cookie is Secure exactly when the browser uses TLS.
func TestSecureFollowsTheScheme(t *testing.T) {
	t.Parallel()
	path, _, operate := tokens(t)
	for name, c := range map[string]struct {
		url, host, origin string
		tls, secure       bool
	}{
		"plain on loopback":                         {"", "127.0.0.1:8420", "http://127.0.0.1:8420", false, false},
		"a program without TLS":                     {"", "127.0.0.1:8420", "", false, false},
		"TLS":                                       {"", "127.0.0.1:8420", "https://127.0.0.1:8420", true, true},
		"a program with TLS":                        {"", "127.0.0.1:8420", "", true, true},
		"a proxy with TLS":                          {"https://muster.example.net", "muster.example.net", "https://muster.example.net", false, true},
		"a proxy with TLS that names loopback":      {"https://muster.example.net", "127.0.0.1:8420", "https://muster.example.net", false, true},
		"past the proxy on loopback":                {"https://muster.example.net", "127.0.0.1:8420", "http://127.0.0.1:8420", false, false},
		"a program at a proxy":                      {"https://muster.example.net", "muster.example.net", "", false, true},
		"a browser that hides where the form is of": {"https://muster.example.net", "muster.example.net", "null", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guard(t, Options{Tokens: path, URL: c.url})
			do := func(path, cookie string) *http.Response {
				r := httptest.NewRequest("POST", path, strings.NewReader(url.Values{"token": {operate}}.Encode()))
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				r.Host = c.host
				if c.origin != "" {
					r.Header.Set("Origin", c.origin)
				}
				if c.origin == "null" {
					r.Header.Set("Sec-Fetch-Site", "same-origin")
				}
				if c.tls {
					r.TLS = &tls.ConnectionState{}
				}
				if cookie != "" {
					r.Header.Set("Cookie", cookie)
				}
				w := httptest.NewRecorder()
				g.ServeHTTP(w, r)
				return w.Result()
			}
			name := "muster"
			if c.secure {
				name = "__Host-muster"
			}
			set := cookieOf(t, do("/login", ""), name)
			if set.Secure != c.secure || set.Path != "/" || set.Domain != "" {
				t.Errorf("%v", set)
			}
			is(t, do("/", name+"="+set.Value), http.StatusOK, "anna may operate")
			if removed := cookieOf(t, do("/logout", name+"="+set.Value), name); removed.MaxAge >= 0 {
				t.Errorf("%v", removed)
			}
			is(t, do("/", name+"="+set.Value), http.StatusUnauthorized, "")
		})
	}
}

// TestCookiesOfOtherHosts tests that a cookie without the prefix, which other hosts of the domain can set, is not
// accepted.
func TestCookiesOfOtherHosts(t *testing.T) {
	t.Parallel()
	path, _, operate := tokens(t)
	g := guard(t, Options{Tokens: path, URL: "https://muster.example.net"})
	set := cookieOf(t, g.do("POST", "/login", url.Values{"token": {operate}}, "Host", "muster.example.net"), "__Host-muster")
	is(t, g.do("GET", "/", nil, "Host", "muster.example.net", "Cookie", "muster="+set.Value), http.StatusUnauthorized, "sign in")
	is(t, g.do("GET", "/", nil, "Host", "muster.example.net", "Cookie", "__Host-muster="+set.Value), http.StatusOK, "anna may operate")
}
