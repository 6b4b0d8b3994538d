package access

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterfleet/muster/testing/webtest"
)

// issuer is a provider of OpenID Connect in this process, whose user is signed in already.
type issuer struct {
	*httptest.Server
	t   *testing.T
	key *ecdsa.PrivateKey

	mu sync.Mutex
	// claims are those of the user, over the usual ones. codes are the challenges of codes.
	claims map[string]any
	codes  map[string]url.Values
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		i.write(w, map[string]any{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"ES256"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		public, err := key.PublicKey.Bytes() // 4, x, y
		if err != nil {
			t.Error(err)
		}
		i.write(w, map[string]any{"keys": []any{map[string]any{
			"kty": "EC", "crv": "P-256", "kid": "1", "alg": "ES256", "use": "sig", "x": encode(public[1:33]), "y": encode(public[33:]),
		}}})
	})
	mux.HandleFunc("/token", i.token)
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)

	return i
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (i *issuer) write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		i.t.Error(err)
	}
}

// authorize returns the code of an address that the browser was sent to.
func (i *issuer) authorize(at string) (state, code string) {
	i.t.Helper()
	to, err := url.Parse(at)
	if err != nil || !strings.HasPrefix(at, i.URL+"/authorize?") {
		i.t.Fatal(at, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	code = rand.Text()
	i.codes[code] = to.Query()

	return to.Query().Get("state"), code
}

// token exchanges a code once, for whoever began and has the secret.
func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	asked := i.codes[r.PostFormValue("code")]
	delete(i.codes, r.PostFormValue("code"))
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	id, secret, _ := r.BasicAuth()
	if asked == nil || asked.Get("code_challenge") != encode(challenge[:]) || id != "muster" || secret != "a-secret-of-the-client" || asked.Get("redirect_uri") != "http://localhost:8420/login/callback" {
		w.WriteHeader(http.StatusBadRequest)
		i.write(w, map[string]any{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{"iss": i.URL, "aud": "muster", "sub": "42", "nonce": asked.Get("nonce"), "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix()}
	for k, v := range i.claims {
		claims[k] = v
	}
	body, err := json.Marshal(claims)
	if err != nil {
		i.t.Error(err)
	}
	signed := encode([]byte(`{"alg":"ES256","kid":"1"}`)) + "." + encode(body)
	digest := sha256.Sum256([]byte(signed))
	x, y, err := ecdsa.Sign(rand.Reader, i.key, digest[:])
	if err != nil {
		i.t.Error(err)
	}
	signature := y.FillBytes(make([]byte, 64))
	x.FillBytes(signature[:32])
	i.write(w, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": signed + "." + encode(signature)})
}

func (i *issuer) user(claims map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.claims = claims
}

// signIn goes the way of a browser.
func (i *issuer) signIn(g *guarded, claims map[string]any) *http.Response {
	i.t.Helper()
	i.user(claims)
	begun := g.do("GET", "/login/oidc?next=/nodes", nil)
	attempt := cookieOf(i.t, begun, attemptCookie)
	if !attempt.HttpOnly || attempt.SameSite != http.SameSiteLaxMode || attempt.Path != "/login" {
		i.t.Errorf("%v", attempt)
	}
	state, code := i.authorize(begun.Header.Get("Location"))

	return g.do("GET", "/login/callback?"+url.Values{"state": {state}, "code": {code}}.Encode(), nil, "Cookie", attemptCookie+"="+attempt.Value, "Sec-Fetch-Site", "cross-site")
}

func oidcOptions(t *testing.T, i *issuer) Options {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a-secret-of-the-client\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	return Options{Listen: "127.0.0.1:8420", URL: "http://localhost:8420", OIDC: OIDC{Issuer: i.URL, ClientID: "muster", SecretFile: secret, ReadGroups: []string{"staff"}, OperateGroups: []string{"ops"}}}
}

func TestOpenIDConnect(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	o := oidcOptions(t, i)
	g := guard(t, o)
	is(t, g.do("GET", "/login", nil), http.StatusOK, `href="/login/oidc?next=%2f"`)
	is(t, g.do("GET", "/", nil), http.StatusUnauthorized, "sign in")

	r := i.signIn(g, map[string]any{"preferred_username": "anna", "groups": []string{"staff", "ops"}})
	c := cookieOf(t, r, "muster")
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
		t.Errorf("%v", c)
	}
	is(t, r, http.StatusOK, `content="0; url=/nodes"`)
	is(t, g.do("POST", "/", nil, "Cookie", "muster="+c.Value), http.StatusOK, "anna (oidc 42) may operate")
	// Another one that serves the same fleet knows the session too, also after a restart.
	is(t, guard(t, o).do("GET", "/", nil, "Cookie", "muster="+c.Value), http.StatusOK, "anna (oidc 42) may operate")
	if _, ok := g.provider.userOfSession(c.Value, time.Now().Add(sessionFor)); ok {
		t.Error("the session does not end")
	}
	is(t, g.do("GET", "/", nil, "Cookie", "muster="+c.Value[1:]), http.StatusUnauthorized, "")

	reader := cookieOf(t, i.signIn(g, map[string]any{"email": "bob@example.net", "email_verified": true, "groups": []string{"staff"}}), "muster")
	is(t, g.do("GET", "/", nil, "Cookie", "muster="+reader.Value), http.StatusOK, "bob@example.net (oidc 42) may read")
	is(t, g.do("POST", "/", nil, "Cookie", "muster="+reader.Value), http.StatusForbidden, "may only read")
	is(t, i.signIn(g, map[string]any{"groups": []string{"others"}}), http.StatusForbidden, "You are in no group")
	is(t, i.signIn(g, map[string]any{"groups": "ops"}), http.StatusForbidden, "You are in no group")
}

// TestNobodyTakesTheNameOfAnother: users choose what the provider calls them, and not their subject.
func TestNobodyTakesTheNameOfAnother(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	o := oidcOptions(t, i)
	o.Tokens, _, _ = tokens(t) // of anna and grafana
	g := guard(t, o)
	long := strings.Repeat("x", 41)
	for _, c := range []struct {
		claims map[string]any
		want   string
	}{
		{map[string]any{"sub": "43", "preferred_username": "anna"}, "anna (oidc 43) may"},
		{map[string]any{"sub": "44", "preferred_username": "anna"}, "anna (oidc 44) may"},
		{map[string]any{"sub": "45", "preferred_username": "anna\u200b "}, "anna (oidc 45) may"},
		{map[string]any{"sub": "46", "preferred_username": "anna (oidc 43)"}, "anna oidc 43 (oidc 46) may"},
		{map[string]any{"sub": "47", "preferred_username": strings.Repeat("é", 500)}, strings.Repeat("é", 20) + " (oidc 47) may"},
		{map[string]any{"sub": "48", "email": "root@vm"}, "oidc 48 may"},
		{map[string]any{"sub": "49", "email": "root@vm", "email_verified": "yes"}, "oidc 49 may"},
		{map[string]any{"sub": "50", "email": "eve@example.net", "email_verified": true}, "eve@example.net (oidc 50) may"},
		{map[string]any{"sub": "anna"}, "oidc anna may"},
		{map[string]any{"sub": "51", "preferred_username": "oidc anna"}, "oidc anna (oidc 51) may"},
		{map[string]any{"sub": "43) (oidc 44", "preferred_username": "anna"}, "anna (oidc sha256:"},
		{map[string]any{"sub": long + "1", "preferred_username": "anna"}, "anna (oidc sha256:"},
		{map[string]any{"sub": "sha256:x", "preferred_username": "anna"}, "anna (oidc sha256:"},
	} {
		c.claims["groups"] = []string{"ops"}
		session := cookieOf(t, i.signIn(g, c.claims), "muster").Value
		answer := text(g.do("GET", "/", nil, "Cookie", "muster="+session))
		if !strings.HasPrefix(answer, c.want) || strings.Contains(answer, "sha256:x)") || len(answer) > 100 {
			t.Errorf("%v: %s, want %s", c.claims, answer, c.want)
		}
		// Whose shares are used depends on no name.
		u, ok := g.provider.userOfSession(session, time.Now())
		if !ok || u.Share() != "oidc "+c.claims["sub"].(string) {
			t.Errorf("%v: the share of %q", c.claims, u.Share())
		}
	}
	is(t, i.signIn(g, map[string]any{"sub": "", "preferred_username": "anna", "groups": []string{"ops"}}), http.StatusUnauthorized, "The provider did not say who you are")
	// A session of a release that did not keep the subject.
	former, err := g.provider.sealer.seal("session", session{Name: "anna", Role: Operate, Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	is(t, g.do("GET", "/", nil, "Cookie", "muster="+former), http.StatusUnauthorized, "sign in")
}

func TestWhatTheProviderMustNotSay(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	g := guard(t, oidcOptions(t, i))
	for name, claims := range map[string]map[string]any{
		"another audience": {"aud": "other"}, "another issuer": {"iss": "https://evil.example.net"}, "expired": {"exp": 1}, "another nonce": {"nonce": "x"},
	} {
		claims["groups"] = []string{"ops"}
		t.Log(name)
		is(t, i.signIn(g, claims), http.StatusUnauthorized, "The provider did not say who you are")
	}
	if log := g.log.String(); strings.Contains(log, "a-secret") {
		t.Error(log)
	}
}

// TestAttemptsOfOthers: a browser takes part in no attempt that another one began.
func TestAttemptsOfOthers(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	g := guard(t, oidcOptions(t, i))
	i.user(map[string]any{"groups": []string{"ops"}})
	mine, theirs := g.do("GET", "/login/oidc", nil), g.do("GET", "/login/oidc", nil)
	cookie := attemptCookie + "=" + cookieOf(t, mine, attemptCookie).Value
	state, code := i.authorize(theirs.Header.Get("Location"))
	for query, cookie := range map[string]string{
		url.Values{"state": {state}, "code": {code}}.Encode(): cookie,
		"state=" + state:   "",
		"state=&code=":     cookie,
		"code=" + code:     attemptCookie + "=nonsense",
		"error=access_den": attemptCookie + "=",
	} {
		is(t, g.do("GET", "/login/callback?"+query, nil, "Cookie", cookie), http.StatusBadRequest, "began elsewhere")
	}
	// A session is no attempt, and an attempt no session.
	is(t, g.do("GET", "/", nil, "Cookie", "muster="+strings.TrimPrefix(cookie, attemptCookie+"=")), http.StatusUnauthorized, "")
}

// TestProviderThatIsSilent is asked once, and does not hold those up who sign in meanwhile.
func TestProviderThatIsSilent(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	o := oidcOptions(t, i)
	g := guard(t, o)
	g.provider.wait = time.Millisecond
	asked, answer := make(chan struct{}, 10), make(chan struct{})
	known := i.Config.Handler
	i.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-answer
		known.ServeHTTP(w, r)
	})
	first := make(chan int)
	go func() { first <- g.do("GET", "/login/oidc", nil).StatusCode }()
	<-asked
	for range 3 {
		is(t, g.do("GET", "/login/oidc", nil), http.StatusBadGateway, "The provider cannot be reached")
	}
	close(answer)
	if got := <-first; got != http.StatusSeeOther || len(asked) > 0 {
		t.Errorf("%d, asked %d times more", got, len(asked))
	}
	if r := g.do("GET", "/login/oidc", nil); r.StatusCode != http.StatusSeeOther {
		t.Error(r.Status)
	}
}

// TestProviderThatSwitchesProtocols holds nobody up: the client hands the connection over with such an
// answer, without a time limit.
func TestProviderThatSwitchesProtocols(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	g := guard(t, oidcOptions(t, i))
	known, end := i.Config.Handler, make(chan struct{})
	i.Config.Handler = webtest.SwitchProtocols(end)
	is(t, g.do("GET", "/login/oidc", nil), http.StatusBadGateway, "The provider cannot be reached")
	close(end)
	i.Config.Handler = known
	if r := g.do("GET", "/login/oidc", nil); r.StatusCode != http.StatusSeeOther {
		t.Error(r.Status)
	}
}

// TestProviderThatIsAway is asked again at the next attempt.
func TestProviderThatIsAway(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	o := oidcOptions(t, i)
	o.OIDC.Issuer = i.URL + "/none"
	g := guard(t, o)
	is(t, g.do("GET", "/login/oidc", nil), http.StatusBadGateway, "The provider cannot be reached")
	if !strings.Contains(g.log.String(), "404") {
		t.Error(g.log.String())
	}
	g.provider.options.OIDC.Issuer = i.URL
	if r := g.do("GET", "/login/oidc", nil); r.StatusCode != http.StatusSeeOther {
		t.Error(r.Status)
	}
	secret := o.OIDC.SecretFile
	if err := os.WriteFile(secret, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(o, g.Guard.log); err == nil || !strings.Contains(err.Error(), "at least 16 are needed") {
		t.Error(err)
	}
}
