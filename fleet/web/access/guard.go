// Package access decides who may read or change a fleet over HTTP: by tokens from a file, or by OpenID Connect. By
// default only this machine can connect, to read. It also keeps other web sites from using the browser of a user who
// signed in.
package access

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	_ "embed" // the page
	"encoding/base64"
	"encoding/json"
	"errors"
	"html/template"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/model/telemetry"
)

// Guard lets requests pass if their user has the necessary role. Create it with New.
type Guard struct {
	options     Options
	log         *slog.Logger
	loopback    bool
	tokens      *reloaded[[]token]
	certificate *reloaded[*tls.Certificate]
	provider    *provider
	sessions    tokenSessions
	crossOrigin *http.CrossOriginProtection
	failures    failures
	sparse      telemetry.RateLimitedLog
}

// New reads the files of the options. Its errors contain the remedy.
func New(o Options, log *slog.Logger) (*Guard, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	g := &Guard{options: o, log: log, crossOrigin: http.NewCrossOriginProtection()}
	g.loopback, _ = isLoopback(o.Listen)
	var err error
	if o.URL != "" {
		// A proxy may send another host name than the page has.
		if err = g.crossOrigin.AddTrustedOrigin(strings.TrimSuffix(o.URL, "/")); err != nil {
			return nil, err
		}
	}
	if o.Tokens != "" {
		if g.tokens, err = load(log, func() ([]token, error) { return readTokens(o.Tokens) }, o.Tokens); err != nil {
			return nil, fileError("tokens", o.Tokens, "muster fleet token NAME --file "+o.Tokens+" makes it", err)
		}
	}
	if o.Certificate != "" {
		read := func() (*tls.Certificate, error) {
			c, err := tls.LoadX509KeyPair(o.Certificate, o.Key)
			return &c, err
		}
		if g.certificate, err = load(log, read, o.Certificate, o.Key); err != nil {
			if failed, is := errors.AsType[*fs.PathError](err); is && failed.Path == o.Key {
				return nil, fileError("tls-key", o.Key, "", err)
			}
			return nil, fileError("tls-cert", o.Certificate, "", err)
		}
	}
	if o.OIDC.Configured() {
		if g.provider, err = newProvider(o); err != nil {
			return nil, err
		}
	}

	return g, nil
}

// open reports whether requests need no sign-in: reads on loopback, if no sign-in is configured.
func (g *Guard) open() bool { return g.loopback && g.tokens == nil && g.provider == nil }

// Handler passes requests to next if their user has the role: read for GET and HEAD, operate for other methods. It
// answers /login and /logout itself. next gets the user from UserOf.
func (g *Guard) Handler(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /login", g.showLogin)
	mux.HandleFunc("POST /login", g.login)
	mux.HandleFunc("POST /logout", g.logout)
	if g.provider != nil {
		mux.HandleFunc("GET /login/oidc", g.beginOIDC)
		mux.HandleFunc("GET /login/callback", g.endOIDC)
	}
	mux.Handle("/", g.protect(next))
	g.crossOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse(w, r, "another site sent this: do it on a page of muster; programs send their token in the header Authorization")
	}))
	guarded := g.crossOrigin.Handler(mux)

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		if !g.mayName(r.Host) {
			Problem(w, http.StatusMisdirectedRequest, "unknown host name; open a loopback address, or start muster fleet serve with --url")
			return
		}
		// No other site can make a browser send this header, and with it cookies do not count.
		if g.credentialOf(r).bearer {
			mux.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

// mayName reports whether a request may name a host. Without sign-in, a web site could point its own name to this
// machine, and its pages would have the same origin.
func (g *Guard) mayName(host string) bool {
	if !g.loopback || isLoopbackName(host) {
		return true
	}
	name := hostname(host)
	if _, err := netip.ParseAddr(name); err == nil {
		return false
	}
	external, err := url.Parse(g.options.URL)

	return err == nil && name != "" && name == strings.ToLower(external.Hostname())
}

// isLoopbackName reports whether a host, with or without a port, is a loopback name or address.
func isLoopbackName(host string) bool {
	name := hostname(host)
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.Unmap().IsLoopback()
	}

	return name == "localhost"
}

func hostname(host string) string {
	name := strings.ToLower(host)
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = strings.ToLower(h)
	}

	return strings.Trim(name, "[]")
}

func (g *Guard) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := g.credentialOf(r)
		user, given := g.userOf(c)
		needed := Operate
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			needed = Read
		}
		switch {
		case user.Role >= needed:
			ctx, end := g.whileMay(context.WithValue(r.Context(), userKey{}, user), c, user.Role)
			defer end()
			next.ServeHTTP(w, r.WithContext(ctx))
		case user.Role > None && user.Name == "":
			refuse(w, r, "access is read-only until you sign in; start muster fleet serve with --tokens, and sign in with a token of the role operate")
		case user.Role > None:
			refuse(w, r, user.Name+" may only read: that needs the role operate")
		case given && g.failed(w, r):
		default:
			g.challenge(w, r)
		}
	})
}

// credential is the bearer token of a program, or the session cookies of a browser. A browser can send several cookies
// with the same name.
type credential struct {
	token   string
	bearer  bool
	cookies []string
}

func (g *Guard) credentialOf(r *http.Request) credential {
	if scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return credential{token: strings.TrimSpace(text), bearer: true}
	}

	return credential{cookies: g.cookies(r, sessionCookie)}
}

// userOf returns the user of a credential, and whether the request tries to prove one.
func (g *Guard) userOf(c credential) (user User, given bool) {
	if g.open() {
		return User{Role: Read}, false
	}
	if c.bearer {
		user, _ = g.userOfToken(c.token)
		return user, true
	}
	for _, cookie := range c.cookies {
		if user, ok := g.userOfSession(cookie, time.Now()); ok {
			return user, true
		}
	}

	// An expired session is not a guess.
	return User{}, false
}

func (g *Guard) userOfSession(cookie string, now time.Time) (User, bool) {
	if token, ok := g.sessions.get(cookie, now); ok && g.tokens != nil {
		return userOfDigest(g.tokens.get(), token)
	}
	if g.provider == nil {
		return User{}, false
	}

	return g.provider.userOfSession(cookie, now)
}

// whileMay returns a context that ends soon after the user of a credential loses the role. Without it a stream would
// continue after its token was removed. Call end after the answer.
func (g *Guard) whileMay(ctx context.Context, c credential, had Role) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	if g.open() {
		return ctx, cancel
	}
	var looking sync.WaitGroup
	looking.Go(func() {
		again := time.NewTicker(recheck)
		defer again.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-again.C:
				if user, _ := g.userOf(c); user.Role < had {
					cancel()
				}
			}
		}
	})

	return ctx, func() {
		cancel()
		looking.Wait()
	}
}

func (g *Guard) userOfToken(text string) (User, bool) {
	if g.tokens == nil {
		return User{}, false
	}

	return userOf(g.tokens.get(), text)
}

// failed counts a failed attempt, and answers the request if there were too many.
func (g *Guard) failed(w http.ResponseWriter, r *http.Request) (answered bool) {
	g.sparse.Log(r.Context(), g.log, slog.LevelWarn, "sign-in failed", "address", r.RemoteAddr, "path", r.URL.Path)
	if !g.failures.add(r.RemoteAddr, time.Now()) {
		return false
	}
	w.Header().Set("Retry-After", "60")
	Problem(w, http.StatusTooManyRequests, "too many attempts to sign in: wait a minute")

	return true
}

// challenge asks for a token; browsers get the page to sign in.
func (g *Guard) challenge(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet || !strings.Contains(r.Header.Get("Accept"), "text/html") {
		w.Header().Set("WWW-Authenticate", `Bearer realm="muster"`)
		Problem(w, http.StatusUnauthorized, "sign in: send a token as Authorization: Bearer, or open /login in a browser")
		return
	}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		// Browsers send the cookie with this redirect, but not with a link from another site.
		page(w, http.StatusOK, pageData{Next: r.URL.RequestURI()})
		return
	}
	http.Redirect(w, r, "/login?"+url.Values{"next": {r.URL.RequestURI()}}.Encode(), http.StatusSeeOther)
}

// refuse answers why the user may not do something; browsers get one line.
func refuse(w http.ResponseWriter, r *http.Request, why string) {
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		Problem(w, http.StatusForbidden, why)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, why, http.StatusForbidden)
}

// Problem answers with a problem document (RFC 9457).
func Problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	text, _ := json.Marshal(map[string]any{"status": status, "title": http.StatusText(status), "detail": detail})
	_, _ = w.Write(append(text, '\n'))
}

const (
	// signedInFor is the lifetime of a session with a token.
	signedInFor = 7 * 24 * time.Hour
	maxForm     = 8 << 10
	// maxNext is the maximum length of the target after sign-in: cookies have 4 KB.
	maxNext = 1500
)

//go:embed login.css
var style string

//go:embed login.html
var pageText string

// pageData is the content of the page: the form, or with Continue a link to Next.
type pageData struct {
	Next    string
	Form    bool
	OIDC    bool
	Tokens  bool
	Problem string
	Style   template.CSS
}

func page(w http.ResponseWriter, status int, data pageData) {
	digest := sha256.Sum256([]byte(style))
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(digest[:])+"'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	data.Next, data.Style = localPath(data.Next), template.CSS(style)
	_ = template.Must(template.New("login").Parse(pageText)).Execute(w, data)
}

// localPath returns a path of this server, / for anything else.
func localPath(next string) string {
	at, err := url.Parse(next)
	if err != nil || len(next) > maxNext || at.Scheme != "" || at.Host != "" || at.User != nil || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}

	return next
}

func (g *Guard) showLogin(w http.ResponseWriter, r *http.Request) {
	g.loginPage(w, http.StatusOK, r.URL.Query().Get("next"), "")
}

func (g *Guard) loginPage(w http.ResponseWriter, status int, next, problem string) {
	page(w, status, pageData{Form: true, Next: next, Problem: problem, Tokens: g.tokens != nil, OIDC: g.provider != nil})
}

func (g *Guard) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	next := localPath(r.PostFormValue("next"))
	text := strings.TrimSpace(r.PostFormValue("token"))
	if _, ok := g.userOfToken(text); !ok {
		if !g.failed(w, r) {
			g.loginPage(w, http.StatusUnauthorized, next, "This is no token of this server, or it was taken out of its file.")
		}
		return
	}
	http.SetCookie(w, g.cookie(r, sessionCookie, g.sessions.begin(text, time.Now()), signedInFor))
	http.Redirect(w, r, next, http.StatusSeeOther)
}

func (g *Guard) logout(w http.ResponseWriter, r *http.Request) {
	for _, id := range g.cookies(r, sessionCookie) {
		g.sessions.end(id)
	}
	http.SetCookie(w, g.cookie(r, sessionCookie, "", -time.Second))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}
