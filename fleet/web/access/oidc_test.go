package access

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
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

// issuer is a provider of OpenID Connect in this process with a signed-in user.
type issuer struct {
	*httptest.Server
	t   *testing.T
	key *ecdsa.PrivateKey

	mu sync.Mutex
	// claims are additional claims of the user. codes are the challenges of codes.
	claims map[string]any
	// header is the header of the id token, empty for the correct one; sign replaces the correct signature.
	header string
	sign   func(signed string) []byte
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

// token exchanges a code once, with verifier and secret.
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
	signed := encode([]byte(cmp.Or(i.header, `{"alg":"ES256","kid":"1"}`))) + "." + encode(body)
	sign := i.sign
	if sign == nil {
		sign = es256(i.t, i.key)
	}
	i.write(w, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": signed + "." + encode(sign(signed))})
}

// es256 returns the ES256 signature of a key.
func es256(t *testing.T, key *ecdsa.PrivateKey) func(signed string) []byte {
	return func(signed string) []byte {
		digest := sha256.Sum256([]byte(signed))
		x, y, err := ecdsa.Sign(rand.Reader, key, digest[:])
		if err != nil {
			t.Error(err)
		}
		signature := y.FillBytes(make([]byte, 64))
		x.FillBytes(signature[:32])

		return signature
	}
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
	if !attempt.HttpOnly || attempt.SameSite != http.SameSiteLaxMode || attempt.Path != "/" {
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
	// Another server of the same fleet accepts the session, also after a restart.
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
		// The shares do not depend on the user's name.
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

// TestWhatTheProviderMustNotSay uses a new server per case, because the limit on failures would hide refusals.
func TestWhatTheProviderMustNotSay(t *testing.T) {
	t.Parallel()
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	hmacOfSecret := func(signed string) []byte {
		h := hmac.New(sha256.New, []byte("a-secret-of-the-client"))
		h.Write([]byte(signed))
		return h.Sum(nil)
	}
	for name, c := range map[string]struct {
		claims map[string]any
		header string
		sign   func(string) []byte
		forge  bool // the claims change after the signature
		log    string
	}{
		"valid":                     {},
		"azp is the client":         {claims: map[string]any{"azp": "muster"}},
		"two audiences with azp":    {claims: map[string]any{"aud": []string{"other", "muster"}, "azp": "muster"}},
		"another audience":          {claims: map[string]any{"aud": "other"}, log: "audience"},
		"no audience":               {claims: map[string]any{"aud": []string{}}, log: "audience"},
		"two audiences without azp": {claims: map[string]any{"aud": []string{"other", "muster"}}, log: "azp"},
		"azp is another client":     {claims: map[string]any{"azp": "other"}, log: "azp"},
		"azp is no text":            {claims: map[string]any{"azp": []string{"muster"}}, log: "azp"},
		"azp is empty":              {claims: map[string]any{"azp": ""}, log: "azp"},
		"another issuer":            {claims: map[string]any{"iss": "https://evil.example.net"}, log: "different provider"},
		"expired":                   {claims: map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}, log: "expired"},
		"without expiry":            {claims: map[string]any{"exp": nil}, log: "claims"},
		"not valid yet":             {claims: map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}, log: "nbf"},
		"another nonce":             {claims: map[string]any{"nonce": "x"}, log: "nonce"},
		"without nonce":             {claims: map[string]any{"nonce": nil}, log: "nonce"},
		"alg none":                  {header: `{"alg":"none","kid":"1"}`, sign: func(string) []byte { return nil }, log: "alg"},
		"alg HS256 with the secret": {header: `{"alg":"HS256","kid":"1"}`, sign: hmacOfSecret, log: "alg"},
		"alg RS256":                 {header: `{"alg":"RS256","kid":"1"}`, log: "alg"},
		"unknown kid":               {header: `{"alg":"ES256","kid":"2"}`, log: "signature"},
		"signed by another key":     {sign: es256(t, other), log: "signature"},
		"signature of other claims": {forge: true, log: "signature"},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIssuer(t)
			i.header, i.sign = c.header, c.sign
			if c.forge {
				i.sign = func(signed string) []byte { return es256(t, i.key)(signed + "x") }
			}
			g := guard(t, oidcOptions(t, i))
			claims := map[string]any{"groups": []string{"ops"}}
			maps.Copy(claims, c.claims)
			r := i.signIn(g, claims)
			if c.log == "" {
				cookieOf(t, r, "muster")
				return
			}
			is(t, r, http.StatusUnauthorized, "The provider did not say who you are")
			if len(r.Cookies()) != 1 || r.Cookies()[0].Name != attemptCookie {
				t.Errorf("%v", r.Cookies())
			}
			if log := g.log.String(); strings.Contains(log, "a-secret") || !strings.Contains(log, c.log) {
				t.Error(log)
			}
		})
	}
}

// TestSessionsOfOtherServers tests that a session is valid only at servers with the same sign-in configuration,
// because the role in the session depends on it.
func TestSessionsOfOtherServers(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	o := oidcOptions(t, i)
	o.OIDC.OperateGroups = []string{"ops", "admins"}
	session := cookieOf(t, i.signIn(guard(t, o), map[string]any{"groups": []string{"ops"}}), "muster").Value
	change := func(f func(*Options)) Options {
		c := o
		f(&c)
		return c
	}
	for name, c := range map[string]struct {
		o     Options
		valid bool
	}{
		"same":                     {o, true},
		"groups in another order":  {change(func(o *Options) { o.OIDC.OperateGroups = []string{"admins", "ops"} }), true},
		"another listen address":   {change(func(o *Options) { o.Listen = "127.0.0.1:8421" }), true},
		"a slash after the URL":    {change(func(o *Options) { o.URL += "/" }), true},
		"the default claim, named": {change(func(o *Options) { o.OIDC.Claim = "groups" }), true},
		"another URL":              {change(func(o *Options) { o.URL = "http://localhost:8421" }), false},
		"another issuer":           {change(func(o *Options) { o.OIDC.Issuer += "/2" }), false},
		"another client":           {change(func(o *Options) { o.OIDC.ClientID = "muster2" }), false},
		"another claim":            {change(func(o *Options) { o.OIDC.Claim = "roles" }), false},
		"fewer operate groups":     {change(func(o *Options) { o.OIDC.OperateGroups = []string{"admins"} }), false},
		"groups joined":            {change(func(o *Options) { o.OIDC.OperateGroups = []string{"ops,admins"} }), false},
		"groups of another role": {change(func(o *Options) {
			o.OIDC.ReadGroups, o.OIDC.OperateGroups = o.OIDC.OperateGroups, o.OIDC.ReadGroups
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := guard(t, c.o).do("POST", "/", nil, "Cookie", "muster="+session)
			if c.valid {
				is(t, r, http.StatusOK, "oidc 42 may operate")
			} else {
				is(t, r, http.StatusUnauthorized, "sign in")
			}
		})
	}
}

// TestAttemptsOfOthers: a browser cannot finish an attempt that another one began.
func TestAttemptsOfOthers(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	o := oidcOptions(t, i)
	i.user(map[string]any{"groups": []string{"ops"}})
	for name, c := range map[string]func(state, mine, code, cookie string) (query, sent string){
		"state of another": func(state, _, code, cookie string) (string, string) {
			return "state=" + state + "&code=" + code, cookie
		},
		"no cookie":   func(state, _, code, _ string) (string, string) { return "state=" + state + "&code=" + code, "" },
		"empty state": func(_, _, code, cookie string) (string, string) { return "state=&code=" + code, cookie },
		"no state":    func(_, _, code, cookie string) (string, string) { return "code=" + code, cookie },
		"part of the state": func(_, mine, code, cookie string) (string, string) {
			return "state=" + mine[1:] + "&code=" + code, cookie
		},
		"a cookie that is no seal": func(_, mine, code, _ string) (string, string) { return "state=" + mine + "&code=" + code, "nonsense" },
		"an error":                 func(_, _, _, _ string) (string, string) { return "error=access_denied", "" },
	} {
		t.Run(name, func(t *testing.T) {
			g := guard(t, o)
			mine, theirs := g.do("GET", "/login/oidc", nil), g.do("GET", "/login/oidc", nil)
			cookie := cookieOf(t, mine, attemptCookie).Value
			own, _ := i.authorize(mine.Header.Get("Location"))
			state, code := i.authorize(theirs.Header.Get("Location"))
			query, sent := c(state, own, code, cookie)
			is(t, g.do("GET", "/login/callback?"+query, nil, "Cookie", attemptCookie+"="+sent), http.StatusBadRequest, "began elsewhere")
			// One of the two cookies is from another program on this host.
			r := g.do("GET", "/login/callback?state="+own+"&code=x", nil, "Cookie", attemptCookie+"=nonsense; "+attemptCookie+"="+cookie)
			is(t, r, http.StatusUnauthorized, "The provider did not say who you are")
			// A session is no attempt, and an attempt no session.
			is(t, g.do("GET", "/", nil, "Cookie", "muster="+cookie), http.StatusUnauthorized, "")
		})
	}
}

// TestAttemptsOfOtherHosts tests that a cookie without the prefix is no attempt. Other hosts of the domain can set such a
// cookie, and could then sign in a browser as another user.
func TestAttemptsOfOtherHosts(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	o := oidcOptions(t, i)
	o.URL = "https://muster.example.net"
	g := guard(t, o)
	begun := g.do("GET", "/login/oidc", nil, "Host", "muster.example.net")
	attempt := cookieOf(t, begun, "__Host-"+attemptCookie)
	if !attempt.Secure || attempt.Path != "/" || attempt.Domain != "" {
		t.Errorf("%v", attempt)
	}
	state, code := i.authorize(begun.Header.Get("Location"))
	callback := "/login/callback?" + url.Values{"state": {state}, "code": {code}}.Encode()
	is(t, g.do("GET", callback, nil, "Host", "muster.example.net", "Cookie", attemptCookie+"="+attempt.Value), http.StatusBadRequest, "began elsewhere")
	// The issuer of the test knows another address, so it refuses the code.
	is(t, g.do("GET", callback, nil, "Host", "muster.example.net", "Cookie", attempt.Name+"="+attempt.Value), http.StatusUnauthorized, "The provider did not say who you are")
}

// TestProviderThatIsSilent gets one request, and delays no other sign-ins.
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

// TestProviderThatSwitchesProtocols delays no request: the client hands over the connection after such an
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
