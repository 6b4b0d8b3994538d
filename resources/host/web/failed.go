package web

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/redact"
)

// Failed returns the error of a request in words: the URL without credentials, what
// failed, and what to do about it. It wraps err only where that holds no credentials.
func Failed(u *url.URL, err error, secrets ...model.Secret) error {
	safe := WithoutCredentials(err, secrets...)
	if do := NetworkRemedy(err); do != "" {
		return fmt.Errorf("%s: %w (%s)", Name(u), safe, do)
	}

	return fmt.Errorf("%s: %w", Name(u), safe)
}

// CutShort returns the error of a response that ended early, which wraps
// io.ErrUnexpectedEOF. A negative total is unknown.
func CutShort(received, total int64) error {
	if total < 0 {
		return fmt.Errorf("the download was cut short after %d bytes: %w", received, io.ErrUnexpectedEOF)
	}

	return fmt.Errorf("the download was cut short, %d of %d bytes were received: %w", received, total, io.ErrUnexpectedEOF)
}

// WithoutCredentials returns the cause of a client's error in words, without the URL,
// the secrets and the credentials of proxies.
func WithoutCredentials(err error, secrets ...model.Secret) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	redactor := redact.New(append(proxySecrets(), secrets...)...)
	text := DescribeNetworkError(err)
	switch safe := redactor.Redact(text); {
	case safe != text || redactor.Redact(err.Error()) != err.Error():
		return errors.New(safe)
	case text != err.Error():
		return worded{err, text}
	}

	return err
}

// proxySecrets returns the credentials of the proxies of the environment.
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

// worded is an error with another text.
type worded struct {
	error
	text string
}

// Error returns the text.
func (w worded) Error() string { return w.text }

// Unwrap returns the error.
func (w worded) Unwrap() error { return w.error }
