package access

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/semaphore"

	"github.com/musterfleet/muster/resources/host/files"
)

const (
	// sessionFor is the lifetime of a session. After it, the current groups at the provider count.
	sessionFor = 8 * time.Hour
	// attemptFor is the maximum time for a sign-in at the provider.
	attemptFor = 10 * time.Minute
	// patience is the timeout of the provider, and maxAnswer the maximum size of its answers.
	patience = 10 * time.Second
	// discoveryWait is how long users wait for a discovery that another user started.
	discoveryWait = 2 * time.Second
	maxAnswer     = 1 << 20
	// attemptCookie is the cookie of a sign-in attempt. The browser returns from another site.
	attemptCookie = "muster_sign_in"
)

// provider signs users in. It reads the data of the issuer at the first sign-in.
type provider struct {
	options Options
	sealer  sealer
	oauth   oauth2.Config
	client  *http.Client

	// wait is how long users wait for the discovery of another user.
	wait time.Duration
	// discovering guards issuer, which is nil before a discovery succeeds.
	discovering *semaphore.Weighted
	issuer      *oidc.Provider
}

var errNoAnswerYet = errors.New("the issuer has not answered yet")

type session struct {
	Name    string    `json:"name"`
	Subject string    `json:"subject"`
	Role    Role      `json:"role"`
	Expires time.Time `json:"expires"`
}

// attempt is the state that a browser brings back from the provider.
type attempt struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Next     string    `json:"next"`
	Expires  time.Time `json:"expires"`
}

func newProvider(o Options) (*provider, error) {
	secret, err := files.ReadSecret(o.OIDC.SecretFile, maxFile)
	if err != nil {
		return nil, fileError("oidc-secret", o.OIDC.SecretFile, "", err)
	}
	if secret = bytes.TrimSpace(secret); len(secret) < 16 {
		return nil, fmt.Errorf("--oidc-secret %s: the secret of the client has %d bytes, at least 16 are needed", o.OIDC.SecretFile, len(secret))
	}
	sealer, err := newSealer(secret, o.signInConfiguration())
	if err != nil {
		return nil, err
	}

	return &provider{
		options: o, sealer: sealer, wait: discoveryWait, discovering: semaphore.NewWeighted(1), client: &http.Client{Timeout: patience, Transport: bounded{http.DefaultTransport}},
		oauth: oauth2.Config{
			ClientID: o.OIDC.ClientID, ClientSecret: string(secret), RedirectURL: strings.TrimSuffix(o.URL, "/") + "/login/callback", Scopes: append([]string{oidc.ScopeOpenID, "profile", "email"}, o.OIDC.Scopes...),
		},
	}, nil
}

// signInConfiguration returns the settings that decide the name and role of a user, as text. A session of another
// configuration is not valid.
func (o Options) signInConfiguration() string {
	sorted := func(groups []string) []string { return slices.Compact(slices.Sorted(slices.Values(groups))) }
	// Strings always encode.
	text, _ := json.Marshal([]any{o.OIDC.Issuer, o.OIDC.ClientID, strings.TrimSuffix(o.URL, "/"), cmp.Or(o.OIDC.Claim, groupsClaim), sorted(o.OIDC.ReadGroups), sorted(o.OIDC.OperateGroups)})

	return string(text)
}

// bounded limits the size of answers. It refuses protocol switches, because a hijacked connection has no timeout.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusSwitchingProtocols {
		return nil, errors.Join(errSwitched, answer.Body.Close())
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(answer.Body, maxAnswer), answer.Body}

	return answer, nil
}

var errSwitched = errors.New("the provider switches to another protocol than HTTP")

// discover returns the data of the issuer. The first user requests it. Others wait a short time, and then get
// errNoAnswerYet. After a failure, the next user requests it again.
func (p *provider) discover(ctx context.Context) (*oidc.Provider, oauth2.Config, error) {
	waiting, cancel := context.WithTimeoutCause(ctx, p.wait, errNoAnswerYet)
	defer cancel()
	if p.discovering.Acquire(waiting, 1) != nil {
		return nil, oauth2.Config{}, context.Cause(waiting)
	}
	defer p.discovering.Release(1)
	config := p.oauth
	if p.issuer == nil {
		// The end of one browser's request does not end the discovery for others.
		issuer, err := oidc.NewProvider(context.WithoutCancel(ctx), p.options.OIDC.Issuer)
		if err != nil {
			return nil, oauth2.Config{}, err
		}
		p.issuer = issuer
	}
	config.Endpoint = p.issuer.Endpoint()

	return p.issuer, config, nil
}

func (p *provider) userOfSession(text string, now time.Time) (User, bool) {
	var s session
	if p.sealer.open("session", text, &s) != nil || !now.Before(s.Expires) || s.Subject == "" {
		return User{}, false
	}

	return User{Name: nameOf(s.Name, s.Subject), Role: s.Role, Subject: s.Subject}, s.Role != None
}

func (g *Guard) beginOIDC(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	ctx := oidc.ClientContext(r.Context(), g.provider.client)
	_, config, err := g.provider.discover(ctx)
	if err != nil {
		g.signInFailed(w, r, http.StatusBadGateway, "The provider cannot be reached: try again.", err)
		return
	}
	a := attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Next: localPath(r.URL.Query().Get("next")), Expires: time.Now().Add(attemptFor)}
	sealed, err := g.provider.sealer.seal("attempt", a)
	if err != nil {
		g.signInFailed(w, r, http.StatusInternalServerError, "Signing in did not begin: try again.", err)
		return
	}
	http.SetCookie(w, g.attempt(r, sealed, attemptFor))
	http.Redirect(w, r, config.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), http.StatusSeeOther)
}

// endOIDC completes the sign-in of a browser that returns from the provider.
func (g *Guard) endOIDC(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, g.attempt(r, "", -time.Second))
	a, ok := g.provider.attemptOf(g.cookies(r, attemptCookie), r.URL.Query().Get("state"), time.Now())
	if !ok {
		g.signInFailed(w, r, http.StatusBadRequest, "Signing in took too long, or began elsewhere: try again.", errNoAttempt)
		return
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(r.Context(), g.provider.client), patience)
	defer cancel()
	s, err := g.provider.identify(ctx, r.URL.Query().Get("code"), a)
	switch {
	case errors.Is(err, errNoGroup):
		g.signInFailed(w, r, http.StatusForbidden, "You are in no group that may see this fleet: ask its administrator.", err)
		return
	case err != nil:
		g.signInFailed(w, r, http.StatusUnauthorized, "The provider did not say who you are: try again.", err)
		return
	}
	sealed, err := g.provider.sealer.seal("session", s)
	if err != nil {
		g.signInFailed(w, r, http.StatusInternalServerError, "Signing in did not end: try again.", err)
		return
	}
	g.log.InfoContext(r.Context(), "user signed in", "user", nameOf(s.Name, s.Subject), "subject", s.Subject, "role", s.Role.String(), "address", r.RemoteAddr)
	http.SetCookie(w, g.cookie(r, sessionCookie, sealed, sessionFor))
	// Browsers would treat a redirect as part of the navigation from the provider, and not send the cookie.
	page(w, http.StatusOK, pageData{Next: a.Next})
}

// attemptOf returns the unexpired attempt with a state among cookies.
func (p *provider) attemptOf(cookies []string, state string, now time.Time) (attempt, bool) {
	for _, value := range cookies {
		var a attempt
		if p.sealer.open("attempt", value, &a) == nil && now.Before(a.Expires) && a.State != "" && a.State == state {
			return a, true
		}
	}

	return attempt{}, false
}

var errNoAttempt = errors.New("this browser has no attempt to sign in with this state")

var errNoGroup = errors.New("in no group that may read")

// identify exchanges the code of the provider for the identity of the user.
func (p *provider) identify(ctx context.Context, code string, a attempt) (session, error) {
	issuer, config, err := p.discover(ctx)
	if err != nil {
		return session{}, err
	}
	answer, err := config.Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return session{}, err
	}
	raw, _ := answer.Extra("id_token").(string)
	id, err := issuer.Verifier(&oidc.Config{ClientID: p.options.OIDC.ClientID}).Verify(ctx, raw)
	if err != nil {
		return session{}, err
	}
	if id.Nonce != a.Nonce {
		return session{}, errors.New("the nonce of the id token does not match")
	}
	if id.Subject == "" || len(id.Subject) > maxSubject {
		return session{}, fmt.Errorf("the id token has a subject of %d bytes, between 1 and %d are taken", len(id.Subject), maxSubject)
	}
	var claims map[string]any
	if err := id.Claims(&claims); err != nil {
		return session{}, err
	}
	if err := checkAuthorizedParty(claims, len(id.Audience), p.options.OIDC.ClientID); err != nil {
		return session{}, err
	}
	role := p.options.OIDC.roleOf(claims)
	if role == None {
		return session{}, fmt.Errorf("%w: %s", errNoGroup, nameOf(called(claims), id.Subject))
	}

	return session{Name: called(claims), Subject: id.Subject, Role: role, Expires: time.Now().Add(sessionFor)}, nil
}

// checkAuthorizedParty returns an error if the claim azp names another client, or is missing in a token for several audiences
// (OpenID Connect Core 3.1.3.7).
func checkAuthorizedParty(claims map[string]any, audiences int, client string) error {
	azp, given := claims["azp"]
	switch {
	case given && azp != client:
		return fmt.Errorf("the claim azp of the id token is %.100v, not %s", azp, client)
	case !given && audiences > 1:
		return fmt.Errorf("the id token has %d audiences and no claim azp", audiences)
	}

	return nil
}

func (o OIDC) roleOf(claims map[string]any) Role {
	role := None
	groups, _ := claims[cmp.Or(o.Claim, groupsClaim)].([]any)
	for _, g := range groups {
		name, _ := g.(string)
		switch {
		case name == "":
		case slices.Contains(o.OperateGroups, name):
			role = max(role, Operate)
		case slices.Contains(o.ReadGroups, name):
			role = max(role, Read)
		}
	}

	return role
}

func (g *Guard) attempt(r *http.Request, value string, lasts time.Duration) *http.Cookie {
	c := g.cookie(r, attemptCookie, value, lasts)
	c.SameSite = http.SameSiteLaxMode

	return c
}

// signInFailed logs the reason, and shows the page to sign in.
func (g *Guard) signInFailed(w http.ResponseWriter, r *http.Request, status int, shown string, err error) {
	g.sparse.Log(r.Context(), g.log, slog.LevelWarn, "signing in with OpenID Connect failed", "address", r.RemoteAddr, "error", brief(err))
	if status != http.StatusBadGateway && g.failures.add(r.RemoteAddr, time.Now()) {
		w.Header().Set("Retry-After", "60")
		status, shown = http.StatusTooManyRequests, "Too many attempts: wait a minute."
	}
	g.loginPage(w, status, "/", shown)
}

// brief returns the text of an error without the rest of the provider's answer.
func brief(err error) string {
	text := fmt.Sprint(err)

	return strings.ToValidUTF8(text[:min(len(text), 300)], "")
}

const (
	// maxCalled is the maximum length of a displayed user name in bytes.
	maxCalled = 40
	// maxSubject is the maximum length of a subject in OpenID Connect; subjects up to maxShown bytes are shown
	// unchanged.
	maxSubject = 255
	maxShown   = 40
	// hashed is the prefix of longer subjects.
	hashed = "sha256:"
)

// called returns the name that a user has at the provider, empty for none. Users choose it, and it is not unique.
func called(claims map[string]any) string {
	name, _ := claims["preferred_username"].(string)
	if verified, _ := claims["email_verified"].(bool); name == "" && verified {
		name, _ = claims["email"].(string)
	}
	// Without parentheses a name cannot end like another subject.
	name = strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) || r == '(' || r == ')' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))

	return strings.TrimSpace(strings.ToValidUTF8(name[:min(len(name), maxCalled)], ""))
}

// nameOf returns the name of a user of a provider: the chosen name and the unique subject. It never equals the name of
// a token.
func nameOf(called, subject string) string {
	if called == "" {
		return "oidc " + shown(subject)
	}

	return called + " (oidc " + shown(subject) + ")"
}

// shown returns the text for a subject: a digest if the subject is long or ambiguous.
func shown(subject string) string {
	odd := func(r rune) bool { return r <= ' ' || r > '~' || r == '(' || r == ')' }
	if len(subject) <= maxShown && !strings.HasPrefix(subject, hashed) && !strings.ContainsFunc(subject, odd) {
		return subject
	}
	sum := sha256.Sum256([]byte(subject))

	return hashed + base64.RawURLEncoding.EncodeToString(sum[:12])
}
