package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/natstest"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func itoa(n int) string { return strconv.Itoa(n) }

// tokens writes a file of tokens, and returns it with one of each role.
func tokens(t *testing.T) (path, read, operate string) {
	t.Helper()
	read, readLine, err := NewToken(Read, "grafana")
	if err != nil {
		t.Fatal(err)
	}
	operate, operateLine, err := NewToken(Operate, "anna")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(readLine+operateLine), 0o600); err != nil {
		t.Fatal(err)
	}

	return path, read, operate
}

// guarded is a guard in front of a page that says who came.
type guarded struct {
	*Guard
	http.Handler
	log hosttest.LogText
}

func guard(t *testing.T, o Options) *guarded {
	t.Helper()
	g := &guarded{}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:8420"
	}
	var err error
	if g.Guard, err = New(o, slog.New(slog.NewTextHandler(&g.log, nil))); err != nil {
		t.Fatal(err)
	}
	g.Handler = g.Guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s may %s", UserOf(r.Context()).Name, UserOf(r.Context()).Role)
	}))

	return g
}

// do makes a request with headers given as name and value in turn.
func (g *guarded) do(method, target string, form url.Values, headers ...string) *http.Response {
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequest(method, target, body)
	r.Host = "127.0.0.1:8420"
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)

	return w.Result()
}

func text(r *http.Response) string {
	all, _ := io.ReadAll(r.Body)

	return string(all)
}

func is(t *testing.T, r *http.Response, status int, want string) {
	t.Helper()
	if got := text(r); r.StatusCode != status || !strings.Contains(got, want) {
		t.Errorf("%s %s, want %d with %s", r.Status, got, status, want)
	}
}

func TestOnLoopbackEverybodyReads(t *testing.T) {
	t.Parallel()
	g := guard(t, Options{})
	r := g.do("GET", "/", nil)
	if r.Header.Get("X-Content-Type-Options") != "nosniff" || r.Header.Get("X-Frame-Options") != "DENY" || !strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%v", r.Header)
	}
	is(t, r, http.StatusOK, " may read")
	is(t, g.do("POST", "/", nil), http.StatusForbidden, "start muster fleet serve with --tokens, and sign in")
	is(t, g.do("GET", "/login", nil), http.StatusOK, "Nobody needs to sign in here")
}

// TestOtherNamesForLoopback: a web site may give its own name the address of this machine.
func TestOtherNamesForLoopback(t *testing.T) {
	t.Parallel()
	g := guard(t, Options{URL: "https://Muster.example.net"})
	for _, host := range []string{"127.0.0.1", "127.0.0.1:1", "localhost:8420", "LOCALHOST", "[::1]:8420", "127.1.2.3", "muster.example.net", "muster.example.net:443", "[::ffff:127.0.0.1]:1"} {
		is(t, g.do("GET", "/", nil, "Host", host), http.StatusOK, "may read")
	}
	for _, host := range []string{"evil.example.net", "127.0.0.1.example.net:8420", "", "10.0.0.1:8420", "example.net", "[fd00::1]:8420", "localhost.example.net", "x:y:z"} {
		is(t, g.do("GET", "/", nil, "Host", host), http.StatusMisdirectedRequest, "unknown host name")
	}
}

func TestBearers(t *testing.T) {
	t.Parallel()
	path, read, operate := tokens(t)
	g := guard(t, Options{Tokens: path})
	is(t, g.do("GET", "/", nil, "Authorization", "Bearer "+read), http.StatusOK, "grafana may read")
	is(t, g.do("GET", "/", nil, "Authorization", "bearer "+operate), http.StatusOK, "anna may operate")
	is(t, g.do("POST", "/", nil, "Authorization", "Bearer "+operate), http.StatusOK, "anna may operate")
	is(t, g.do("POST", "/", nil, "Authorization", "Bearer "+read), http.StatusForbidden, "grafana may only read")
	r := g.do("GET", "/", nil)
	if r.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("%v", r.Header)
	}
	is(t, r, http.StatusUnauthorized, "send a token as Authorization: Bearer")
	for range maxFailures {
		is(t, g.do("GET", "/", nil, "Authorization", "Bearer "+read+"x"), http.StatusUnauthorized, "")
	}
	r = g.do("GET", "/", nil, "Authorization", "Bearer nonsense")
	if r.Header.Get("Retry-After") != "60" {
		t.Errorf("%v", r.Header)
	}
	is(t, r, http.StatusTooManyRequests, "wait a minute")
	// Others cannot lock out the holder of a token.
	is(t, g.do("GET", "/", nil, "Authorization", "Bearer "+read), http.StatusOK, "grafana may read")
	if log := g.log.String(); strings.Contains(log, "muster_") || strings.Contains(log, "nonsense") || !strings.Contains(log, "sign-in failed") {
		t.Error(log)
	}
}

// cookieOf returns the cookie of a name that an answer sets.
func cookieOf(t *testing.T, r *http.Response, name string) *http.Cookie {
	t.Helper()
	for _, c := range r.Cookies() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no cookie %s: %s %v", name, r.Status, r.Header)

	return nil
}

func TestSigningIn(t *testing.T) {
	t.Parallel()
	path, _, operate := tokens(t)
	g := guard(t, Options{Tokens: path})
	r := g.do("GET", "/nodes?on=a%26b", nil, "Accept", "text/html")
	if to := r.Header.Get("Location"); r.StatusCode != http.StatusSeeOther || to != "/login?next=%2Fnodes%3Fon%3Da%2526b" {
		t.Errorf("%s %s", r.Status, to)
	}
	r = g.do("GET", r.Header.Get("Location"), nil)
	is(t, r, http.StatusOK, `name="next" value="/nodes?on=a%26b"`)
	is(t, g.do("POST", "/login", url.Values{"token": {"nonsense"}, "next": {"/a"}}), http.StatusUnauthorized, "This is no token of this server")
	r = g.do("POST", "/login", url.Values{"token": {" " + operate + "\n"}, "next": {"/nodes"}})
	c := cookieOf(t, r, "muster")
	if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/nodes" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure || c.Domain != "" {
		t.Errorf("%s %v", r.Status, r.Header)
	}
	is(t, g.do("POST", "/", nil, "Cookie", "muster="+c.Value), http.StatusOK, "anna may operate")
	is(t, g.do("GET", "/", nil, "Cookie", "muster=nonsense"), http.StatusUnauthorized, "")

	// A page of another site has the browser send it, where that does not know SameSite.
	for _, from := range [][2]string{{"Origin", "https://evil.example.net"}, {"Sec-Fetch-Site", "cross-site"}} {
		r = g.do("POST", "/", nil, "Cookie", "muster="+c.Value, from[0], from[1])
		if is(t, r, http.StatusForbidden, "another site sent this"); r.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%v", r.Header)
		}
		// A request with a token in its header is no forged browser request, whatever its cookie.
		is(t, g.do("POST", "/", nil, "Authorization", "Bearer "+operate, from[0], from[1]), http.StatusOK, "anna may operate")
		is(t, g.do("POST", "/", nil, "Authorization", "Bearer nonsense", "Cookie", "muster="+c.Value, from[0], from[1]), http.StatusUnauthorized, "")
		is(t, g.do("POST", "/login", url.Values{"token": {operate}}, from[0], from[1]), http.StatusForbidden, "")
		is(t, g.do("POST", "/logout", nil, from[0], from[1]), http.StatusForbidden, "")
	}
	// A link on another site: the browser comes again, from here.
	r = g.do("GET", "/nodes?a=1", nil, "Accept", "text/html", "Sec-Fetch-Site", "cross-site")
	is(t, r, http.StatusOK, `http-equiv="refresh" content="0; url=/nodes?a=1"`)

	r = g.do("POST", "/logout", nil)
	if c := cookieOf(t, r, "muster"); c.MaxAge >= 0 || c.Value != "" {
		t.Errorf("%v", c)
	}
	if strings.Contains(g.log.String(), operate) {
		t.Error(g.log.String())
	}
}

func TestTheWayOnStaysHere(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{
		"/nodes?on=a#b": "/nodes?on=a#b", "/": "/", "": "/", "nodes": "/", "//evil.example": "/", "/\\evil.example": "/", "https://evil.example/": "/",
		"/" + strings.Repeat("x", maxNext): "/", "javascript:alert(1)": "/", "/\r\nX: y": "/", "///evil.example": "/", "/%zz": "/", "/\t/evil.example": "/", `/"><script>`: `/"><script>`,
	} {
		if got := localPath(next); got != want {
			t.Errorf("%q: %q", next, got)
		}
	}
	path, _, _ := tokens(t)
	r := guard(t, Options{Tokens: path}).do("GET", "/login?"+url.Values{"next": {`/"><script>`}}.Encode(), nil)
	if page := text(r); strings.Contains(page, "<script>") {
		t.Error(page)
	}
}

func FuzzTheWayOn(f *testing.F) {
	f.Add("/nodes?on=a#b")
	f.Add("//evil.example")
	f.Add("/../..//evil.example")
	here := &url.URL{Scheme: "https", Host: "muster.example.net", Path: "/login"}
	f.Fuzz(func(t *testing.T, next string) {
		at, err := here.Parse(localPath(next))
		if err != nil || at.Host != here.Host || at.Scheme != here.Scheme || at.User != nil {
			t.Errorf("%q leads to %v, %v", next, at, err)
		}
	})
}

// TestTokensThatChange: a removed token ends, and an invalid file keeps all tokens valid.
func TestTokensThatChange(t *testing.T) {
	t.Parallel()
	path, read, operate := tokens(t)
	g := guard(t, Options{Tokens: path})
	set := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		g.tokens.next = time.Time{}
	}
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	set(strings.SplitAfter(string(old), "\n")[0])
	is(t, g.do("GET", "/", nil, "Authorization", "Bearer "+operate), http.StatusUnauthorized, "")
	is(t, g.do("GET", "/", nil, "Authorization", "Bearer "+read), http.StatusOK, "grafana")
	set("garbage")
	is(t, g.do("GET", "/", nil, "Authorization", "Bearer "+read), http.StatusOK, "grafana")
	if !strings.Contains(g.log.String(), "a changed file cannot be used") {
		t.Error(g.log.String())
	}
}

// TestStreamsEndWithTheirToken, and just these.
func TestStreamsEndWithTheirToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, read, operate := tokens(t)
		g, err := New(Options{Listen: "127.0.0.1:8420", Tokens: path}, hosttest.Log(t))
		if err != nil {
			t.Fatal(err)
		}
		ended := map[string]chan struct{}{}
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		stream := g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		for _, token := range []string{read, operate} {
			done := make(chan struct{})
			ended[token] = done
			go func() {
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:8420/", nil)
				r.Header.Set("Authorization", "Bearer "+token)
				stream.ServeHTTP(httptest.NewRecorder(), r)
				close(done)
			}()
		}
		goesOn := func(token string) bool {
			synctest.Wait()
			select {
			case <-ended[token]:
				return false
			default:
				return true
			}
		}
		<-time.After(time.Hour)
		if !goesOn(read) || !goesOn(operate) {
			t.Fatal("a stream ended by itself")
		}
		all, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, kept, _ := strings.Cut(string(all), "\n")
		if err := os.WriteFile(path, []byte(kept), 0o600); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * recheck)
		if goesOn(read) || !goesOn(operate) {
			t.Errorf("the stream of the token that was taken out goes on: %v, the other one: %v", goesOn(read), goesOn(operate))
		}
		// Its content may need the role that it had.
		if err := os.WriteFile(path, []byte(strings.Replace(kept, "operate", "read", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * recheck)
		if goesOn(operate) {
			t.Error("the stream of a token goes on that only reads now")
		}
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	oidc := OIDC{Issuer: "https://idp.example.net", ClientID: "muster", SecretFile: "secret", ReadGroups: []string{"staff"}}
	for want, o := range map[string]Options{
		"":                                   {Listen: "127.0.0.1:8420"},
		"--listen: invalid address \"8420\"": {Listen: "8420"},
		"--listen: invalid address \"web01:8420\"":                           {Listen: "web01:8420"},
		"--listen: invalid address \"127.0.0.1:\"":                           {Listen: "127.0.0.1:"},
		"--listen: 0.0.0.0:1 is not on loopback: others":                     {Listen: "0.0.0.0:1"},
		"--listen: 10.0.0.1:1 is not on loopback: anyone":                    {Listen: "10.0.0.1:1", Insecure: true},
		"--listen: [::]:1 is not on loopback: anyone":                        {Listen: "[::]:1", Certificate: "c", Key: "k"},
		"--tls-cert: also give --tls-key":                                    {Listen: "localhost:1", Certificate: "c"},
		"--tls-key: also give --tls-cert":                                    {Listen: "localhost:1", Key: "k"},
		"--url: \"example.net\" is no URL":                                   {Listen: "[::1]:1", URL: "example.net"},
		"--url: \"https://a/b\" is no URL":                                   {Listen: "[::1]:1", URL: "https://a/b"},
		"--oidc-issuer: also give --url":                                     {Listen: "[::1]:1", OIDC: oidc},
		"--oidc-issuer: also give --oidc-client and --oidc-secret and --url": {Listen: "[::1]:1", OIDC: OIDC{Issuer: "https://i"}},
		"--oidc-issuer: also give --oidc-read or --oidc-operate":             {Listen: "[::1]:1", URL: "https://a", OIDC: OIDC{Issuer: "https://i", ClientID: "c", SecretFile: "s"}},
		// What asks for sign-in does not serve without.
		"--oidc-client: also give --oidc-issuer":  {Listen: "[::1]:1", OIDC: OIDC{ClientID: "c"}},
		"--oidc-secret: also give --oidc-issuer":  {Listen: "[::1]:1", Tokens: "t", OIDC: OIDC{SecretFile: "s"}},
		"--oidc-scope: also give --oidc-issuer":   {Listen: "[::1]:1", OIDC: OIDC{Scopes: []string{"groups"}}},
		"--oidc-claim: also give --oidc-issuer":   {Listen: "[::1]:1", OIDC: OIDC{Claim: "roles"}},
		"--oidc-read: also give --oidc-issuer":    {Listen: "[::1]:1", OIDC: OIDC{ReadGroups: []string{"staff"}}},
		"--oidc-operate: also give --oidc-issuer": {Listen: "[::1]:1", OIDC: OIDC{OperateGroups: []string{"ops"}}},
	} {
		if err := o.Validate(); want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, o := range []Options{
		{Listen: "0.0.0.0:1", Insecure: true, Tokens: "t"}, {Listen: "0.0.0.0:1", Certificate: "c", Key: "k", Tokens: "t"},
		{Listen: "[::]:1", Certificate: "c", Key: "k", URL: "https://muster.example.net/", OIDC: oidc}, {Listen: "[::ffff:127.0.0.1]:1"}, {Listen: "[::1]:1", OIDC: OIDC{Claim: "groups"}},
	} {
		if err := o.Validate(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestTLS serves with a certificate that is exchanged while it runs.
func TestTLS(t *testing.T) {
	t.Parallel()
	path, read, _ := tokens(t)
	authority := natstest.NewAuthority(t)
	cert, key := authority.Issue(t, "first")
	g := guard(t, Options{Listen: "127.0.0.1:0", Certificate: cert, Key: key, Tokens: path})
	l, err := g.Listen(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: g, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	pem, err := os.ReadFile(authority.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	get := func(want string) {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
		defer client.CloseIdleConnections()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.URL(l), nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+read)
		r, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		is(t, r, http.StatusOK, "grafana")
		if name := r.TLS.PeerCertificates[0].Subject.CommonName; name != want || r.ProtoMajor != 2 {
			t.Errorf("%s by %s, want %s", name, r.Proto, want)
		}
	}
	get("first")
	second, secondKey := authority.Issue(t, "second")
	for from, to := range map[string]string{second: cert, secondKey: key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	g.certificate.mu.Lock()
	g.certificate.next = time.Time{}
	g.certificate.mu.Unlock()
	get("second")
	r := g.do("POST", "/login", url.Values{"token": {read}})
	if c := cookieOf(t, r, "__Host-muster"); !c.Secure {
		t.Errorf("%v", c)
	}
}
