// Package web fetches over HTTP through the proxies of the environment, with timeouts. It sends credentials
// only to their host, and never shows them.
package web

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// ErrURL means that the URL is invalid. It does not quote the URL, which may contain a password.
var ErrURL = errors.New("the URL is invalid: percent-encode special characters, such as / or @ in a password")

const (
	// maxRedirects is the longest chain of redirects.
	maxRedirects = 10
	// maxHeaders limits the bytes of headers.
	maxHeaders = 1 << 20
)

// Options configure a client. The zero value is ready to use.
type Options struct {
	// Timeout limits a request with its body; 0 means no limit.
	Timeout time.Duration
	// HeaderTimeout limits the wait for a response; 0 means no limit.
	HeaderTimeout time.Duration
	// TLS is nil for the system's certificates.
	TLS *tls.Config
}

// NewClient returns a client that uses the proxies of the environment and follows the redirects that
// CheckRedirect allows.
func NewClient(o Options) *http.Client {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: o.HeaderTimeout, TLSHandshakeTimeout: 15 * time.Second,
		IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: maxHeaders, TLSClientConfig: o.TLS, DisableCompression: true, ForceAttemptHTTP2: true,
	}

	return &http.Client{Timeout: o.Timeout, Transport: transport, CheckRedirect: CheckRedirect}
}

// The errors of a refused redirect.
var (
	// ErrRedirects is an endless chain of redirects.
	ErrRedirects = errors.New("more than 10 redirects")
	// ErrDowngrade is a redirect from https to http.
	ErrDowngrade = errors.New("redirected from https to http")
	// ErrScheme is a redirect to another scheme.
	ErrScheme = errors.New("redirected to a URL that is not http or https")
	// ErrLocation is a redirect to a URL that cannot be parsed.
	ErrLocation = errors.New("redirected to a URL that cannot be parsed")
)

// RedirectError returns the redirect error that an error of a client wraps, nil for none.
func RedirectError(err error) error {
	for _, refused := range []error{ErrRedirects, ErrDowngrade, ErrScheme, ErrLocation} {
		if errors.Is(err, refused) {
			return refused
		}
	}
	// Go has no error value for this, and its text may contain a token.
	var outer *url.Error
	if errors.As(err, &outer) && strings.HasPrefix(outer.Err.Error(), "failed to parse Location header") {
		return ErrLocation
	}

	return nil
}

// CheckRedirect refuses a redirect to an unencrypted URL or another scheme, and removes the credentials if
// the host or port changes.
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
	// The previous URL may have a token in its query.
	req.Header.Del("Referer")
	home := via[0].URL.Host
	elsewhere := func(r *http.Request) bool { return r.URL.Host != home }
	if !elsewhere(req) && !slices.ContainsFunc(via, elsewhere) {
		return nil
	}
	// Any header of the user may be a credential.
	for name := range req.Header {
		if !slices.Contains([]string{"Accept-Encoding", "Range", "If-Range", "User-Agent"}, name) {
			req.Header.Del(name)
		}
	}

	return nil
}

// NewRequest returns a request for the uncompressed content of a URL, and the secrets of the URL. It moves
// credentials of the URL to a header, so that errors show the URL without them. Its error is ErrURL.
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

// Name returns a URL that may be shown: without credentials and query.
func Name(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// Secrets returns the secrets of a URL: the credentials, and the query with its values.
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

// UserSecrets returns the credentials before the host: the password, or a user without a password, which is a
// token.
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

// BasicSecrets returns a password, and its encoding in a request.
func BasicSecrets(user, password string) []model.Secret {
	return []model.Secret{model.NewSecret(password), model.NewSecret(base64.StdEncoding.EncodeToString([]byte(user + ":" + password)))}
}
