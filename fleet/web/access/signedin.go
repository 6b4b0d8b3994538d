package access

import (
	"crypto/sha256"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// maxSessions is how many browsers can be signed in with one token at the same time.
const maxSessions = 100

// tokenSession is a browser that signed in with a token.
type tokenSession struct {
	token   [sha256.Size]byte
	expires time.Time
}

// tokenSessions are the browsers that signed in with a token, by the digest of the session id in
// their cookie. They end with this process.
type tokenSessions struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]tokenSession
}

// begin returns the id of a new session of a token. A token with too many sessions loses the one
// that expires first.
func (s *tokenSessions) begin(token string, now time.Time) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[[sha256.Size]byte]tokenSession{}
	}
	added := tokenSession{sha256.Sum256([]byte(token)), now.Add(signedInFor)}
	var first [sha256.Size]byte
	count := 0
	for digest, t := range s.all {
		switch {
		case !now.Before(t.expires):
			delete(s.all, digest)
		case t.token == added.token:
			if count == 0 || t.expires.Before(s.all[first].expires) {
				first = digest
			}
			count++
		}
	}
	if count >= maxSessions {
		delete(s.all, first)
	}
	id = random()
	s.all[sha256.Sum256([]byte(id))] = added

	return id
}

// get returns the digest of the token of a session.
func (s *tokenSessions) get(id string, now time.Time) (token [sha256.Size]byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.all[sha256.Sum256([]byte(id))]

	return t.token, ok && now.Before(t.expires)
}

// end ends a session.
func (s *tokenSessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sha256.Sum256([]byte(id)))
}

const (
	// plainCookie names the session cookie on connections without TLS. Browsers accept a cookie named
	// secureCookie only over TLS and only from this host name.
	plainCookie, secureCookie = "muster", "__Host-muster"
	// maxCookies limits the cookies of one name that are tried: other programs on the host name can set them.
	maxCookies = 10
)

// cookie returns the session cookie in the answer to a request; a time below zero removes it.
func (g *Guard) cookie(r *http.Request, value string, lasts time.Duration) *http.Cookie {
	name, secure := plainCookie, g.isSecure(r)
	if secure {
		name = secureCookie
	}

	return &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(lasts / time.Second),
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode,
	}
}

// isSecure reports whether the browser that sent a request reached this server, or the proxy before
// it, over TLS. A form says so by its origin; without one the configured URL decides.
func (g *Guard) isSecure(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	if origin, err := url.Parse(r.Header.Get("Origin")); err == nil && origin.Host != "" {
		return origin.Scheme == "https"
	}

	return g.isExternallySecure()
}

// isExternallySecure reports whether browsers use TLS, here or at a proxy.
func (g *Guard) isExternallySecure() bool {
	return g.certificate != nil || strings.HasPrefix(strings.ToLower(g.options.URL), "https:")
}

// cookieNames returns the names of the session cookies that count for a request. Another host of the
// same domain can set a cookie without the prefix, so it counts only where there is no TLS: a proxy
// can use loopback names.
func (g *Guard) cookieNames(r *http.Request) []string {
	switch {
	case r.TLS != nil:
		return []string{secureCookie}
	case g.isExternallySecure() && !isLoopbackName(r.Host):
		return []string{secureCookie}
	default:
		return []string{secureCookie, plainCookie}
	}
}

// cookiesOf returns the values of the cookies with one of the names.
func cookiesOf(r *http.Request, names ...string) (values []string) {
	for _, name := range names {
		for _, c := range r.CookiesNamed(name) {
			if len(values) == maxCookies {
				return values
			}
			if c.Value != "" {
				values = append(values, c.Value)
			}
		}
	}

	return values
}
