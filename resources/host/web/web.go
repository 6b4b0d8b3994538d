// Package web is how muster fetches over HTTP: by the proxies of the
// environment, with time-outs, and with credentials that go to the host they
// are for and are never shown.
package web

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// ErrURL is a URL that cannot be read. It does not quote it, because a part of
// a password may be in what is wrong with it.
var ErrURL = errors.New("the URL cannot be read: percent-encode what is special in it, such as / or @ in a password")

// maxRedirects is how many redirects are followed.
const maxRedirects = 10

// Options are what a client is made from. The zero value is ready to use.
type Options struct {
	// Timeout bounds a whole request with the reading of its answer; 0 does not.
	Timeout time.Duration
	// HeaderTimeout bounds the wait for an answer to begin; 0 does not.
	HeaderTimeout time.Duration
	// TLS is nil for the certificates that the system trusts.
	TLS *tls.Config
}

// NewClient makes a client that takes its proxies from the environment and
// follows redirects as CheckRedirect allows.
func NewClient(o Options) *http.Client {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: o.HeaderTimeout, TLSHandshakeTimeout: 15 * time.Second,
		IdleConnTimeout: 30 * time.Second, TLSClientConfig: o.TLS, DisableCompression: true, ForceAttemptHTTP2: true,
	}

	return &http.Client{Timeout: o.Timeout, Transport: transport, CheckRedirect: CheckRedirect}
}

// The errors of a redirect that is not followed.
var (
	// ErrRedirects is a chain of redirects that does not end.
	ErrRedirects = errors.New("more than 10 redirects")
	// ErrDowngrade is a redirect that would give up encryption.
	ErrDowngrade = errors.New("redirected from https to http")
	// ErrScheme is a redirect to what is not on the web.
	ErrScheme = errors.New("redirected to a URL that is not one of http or https")
	// ErrLocation is a redirect whose target cannot be read.
	ErrLocation = errors.New("redirected to a URL that cannot be read")
)

// RedirectError gives which of the errors of a redirect a client's error is, nil
// when it is none.
func RedirectError(err error) error {
	for _, refused := range []error{ErrRedirects, ErrDowngrade, ErrScheme, ErrLocation} {
		if errors.Is(err, refused) {
			return refused
		}
	}
	// Go has no error for it, and a token may be in what it says.
	var outer *url.Error
	if errors.As(err, &outer) && strings.HasPrefix(outer.Err.Error(), "failed to parse Location header") {
		return ErrLocation
	}

	return nil
}

// CheckRedirect refuses a redirect that would give up encryption or leave the
// web, and leaves the credentials behind when another host, or another port of
// it, is next.
func CheckRedirect(req *http.Request, via []*http.Request) error {
	scheme := req.URL.Scheme
	switch {
	case len(via) >= maxRedirects:
		return ErrRedirects
	case scheme != "http" && scheme != "https" || req.URL.Host == "":
		return ErrScheme
	case via[len(via)-1].URL.Scheme == "https" && scheme != "https":
		return ErrDowngrade
	}
	// The page that led here may have a token in its query.
	req.Header.Del("Referer")
	home := via[0].URL.Host
	elsewhere := func(r *http.Request) bool { return r.URL.Host != home }
	if !elsewhere(req) && !slices.ContainsFunc(via, elsewhere) {
		return nil
	}
	// Any header that somebody gave may be a credential.
	for name := range req.Header {
		if !slices.Contains([]string{"Accept-Encoding", "Range", "If-Range", "User-Agent"}, name) {
			req.Header.Del(name)
		}
	}

	return nil
}

// NewRequest makes the request that gets a URL as it is, without packing it on
// the way, and the secrets of the URL. What stands before the host becomes a
// header, so that the URL in errors of others is without it. Its error is ErrURL.
func NewRequest(ctx context.Context, source string) (*http.Request, []model.Secret, error) {
	u, err := url.Parse(source)
	if err != nil || u.Host == "" {
		return nil, nil, ErrURL
	}
	secrets, user := Secrets(u), u.User
	u.User = nil
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, nil, ErrURL
	}
	req.Header.Set("Accept-Encoding", "identity")
	if user != nil {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
	}

	return req, secrets, nil
}

// Name gives a URL as it may be shown: without what stands before the host and
// without its query.
func Name(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// Secrets gives what of a URL must not be shown: what stands before the host,
// and the query with its values.
func Secrets(u *url.URL) []model.Secret {
	out := UserSecrets(u)
	if u.RawQuery != "" {
		out = append(out, model.NewSecret(u.RawQuery))
	}
	for _, values := range u.Query() {
		for _, v := range values {
			out = append(out, model.NewSecret(v))
		}
	}

	return out
}

// UserSecrets gives what must not be shown of what stands before the host: the
// password, or a user without one, which is a token.
func UserSecrets(u *url.URL) []model.Secret {
	if u.User == nil {
		return nil
	}
	password, ok := u.User.Password()
	if !ok {
		return []model.Secret{model.NewSecret(u.User.Username())}
	}

	return append(BasicSecrets(u.User.Username(), password), model.NewSecret(u.User.String()))
}

// BasicSecrets gives a password and the form it has in a request.
func BasicSecrets(user, password string) []model.Secret {
	return []model.Secret{model.NewSecret(password), model.NewSecret(base64.StdEncoding.EncodeToString([]byte(user + ":" + password)))}
}

// WithoutCredentials gives the cause of a client's error without the URL, the
// secrets and the credentials of proxies in it.
func WithoutCredentials(err error, secrets ...model.Secret) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	redactor := model.NewRedactor(append(proxySecrets(), secrets...)...)
	if text := redactor.Redact(err.Error()); text != err.Error() {
		return errors.New(text)
	}

	return err
}

// proxySecrets are the credentials of the proxies of the environment.
func proxySecrets() []model.Secret {
	var out []model.Secret
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"} {
		value := os.Getenv(name)
		at := strings.LastIndex(value, "@")
		if at < 0 {
			continue
		}
		user := value[:at]
		if _, after, found := strings.Cut(user, "://"); found {
			user = after
		}
		_, password, _ := strings.Cut(user, ":")
		out = append(out, model.NewSecret(user), model.NewSecret(password))
	}

	return out
}
