package access

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// errSeal is a text that another server sealed, or that was sealed for another purpose.
var errSeal = errors.New("not sealed by this server")

type sealer struct{ aead cipher.AEAD }

// newSealer returns a sealer for a secret and a sign-in configuration. Servers with the same secret and
// configuration can open each other's texts, also after a restart.
func newSealer(secret []byte, configuration string) (sealer, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "muster fleet serve: sessions "+configuration, 32)
	if err != nil {
		return sealer{}, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)

	return sealer{aead}, err
}

func (s sealer) seal(purpose string, v any) (string, error) {
	text, err := json.Marshal(v)

	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, []byte(purpose))), err
}

// open decodes a text that seal made for the same purpose, or returns errSeal.
func (s sealer) open(purpose, text string, v any) error {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return errSeal
	}
	plain, err := s.aead.Open(nil, nil, raw, []byte(purpose))
	if err != nil {
		return errSeal
	}

	return json.Unmarshal(plain, v)
}

const maxSessions = 100

// tokenSession is a browser that signed in with a token.
type tokenSession struct {
	token   [sha256.Size]byte
	expires time.Time
}

// tokenSessions are the sessions of browsers that signed in with a token, by the digest of the session
// id. They end with the process.
type tokenSessions struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]tokenSession
}

// begin returns the id of a new session of a token. If the token has too many sessions, the session
// that expires first ends.
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
	id = rand.Text()
	s.all[sha256.Sum256([]byte(id))] = added

	return id
}

func (s *tokenSessions) get(id string, now time.Time) (token [sha256.Size]byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.all[sha256.Sum256([]byte(id))]

	return t.token, ok && now.Before(t.expires)
}

func (s *tokenSessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sha256.Sum256([]byte(id)))
}

const (
	// sessionCookie names the session cookie on connections without TLS. Over TLS the name begins with
	// securePrefix. Browsers accept a cookie with this prefix only over TLS and only from its own host.
	sessionCookie, securePrefix = "muster", "__Host-"
	// maxCookies limits the cookies that are tried. Other programs on the same host can set cookies with these
	// names.
	maxCookies = 10
)

// cookie returns a cookie for the response to a request, with a name without TLS. A negative lifetime removes it.
func (g *Guard) cookie(r *http.Request, name, value string, lasts time.Duration) *http.Cookie {
	secure := g.isSecure(r)
	if secure {
		name = securePrefix + name
	}

	return &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(lasts / time.Second),
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode,
	}
}

// isSecure reports whether the browser uses TLS to this server or its proxy. The Origin of a request
// decides; without one, the configured URL does.
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

// cookies returns the values of the valid cookies of a request with a name without TLS. Other hosts of the domain
// can set a cookie without the prefix, so it is valid only without TLS. A request for a loopback name may have bypassed
// the proxy with TLS.
func (g *Guard) cookies(r *http.Request, name string) (values []string) {
	names := []string{securePrefix + name, name}
	if r.TLS != nil || g.isExternallySecure() && !isLoopbackName(r.Host) {
		names = names[:1]
	}
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
