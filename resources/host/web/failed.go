package web

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/redact"
)

// Failed describes the error of a request: the URL without credentials, the cause and the remedy. It wraps
// err only if err contains no credentials.
func Failed(u *url.URL, err error, secrets ...model.Secret) error {
	safe := WithoutCredentials(err, secrets...)
	if do := NetworkRemedy(err); do != "" {
		return fmt.Errorf("%s: %w (%s)", Name(u), safe, do)
	}

	return fmt.Errorf("%s: %w", Name(u), safe)
}

// CutShort returns the error of an incomplete response, which wraps io.ErrUnexpectedEOF. A negative total is
// unknown.
func CutShort(received, total int64) error {
	if total < 0 {
		return fmt.Errorf("the download was cut short after %d bytes: %w", received, io.ErrUnexpectedEOF)
	}

	return fmt.Errorf("the download was cut short, %d of %d bytes were received: %w", received, total, io.ErrUnexpectedEOF)
}

// WithoutCredentials describes the error of a client without the URL, the secrets and the credentials of
// proxies.
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

type worded struct {
	error
	text string
}

// Error returns the text.
func (w worded) Error() string { return w.text }

// Unwrap returns the error.
func (w worded) Unwrap() error { return w.error }

// NetworkRemedy returns a remedy for a network error, or an empty string if none is known.
func NetworkRemedy(err error) string { return explainNetworkError(err).remedy }

// DescribeNetworkError returns the text of an error. It replaces Go's text of a network error with plain words.
func DescribeNetworkError(err error) string {
	known := explainNetworkError(err)
	if known.cause == nil {
		return err.Error()
	}

	return strings.Replace(err.Error(), known.cause.Error(), known.what, 1)
}

// networkFailure describes a network error. cause is the part of the error that came from the
// network, or nil for other errors.
type networkFailure struct {
	cause        error
	what, remedy string
}

func explainNetworkError(err error) networkFailure {
	var operation *net.OpError
	var name *net.DNSError
	var address *net.AddrError
	var timeout net.Error
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var cause error
	isOperation := errors.As(err, &operation)
	if isOperation {
		cause = operation
	}
	switch {
	case errors.As(err, &name):
		return networkFailure{firstError(cause, name), "cannot resolve " + name.Name + ": " + name.Err, "correct the name, or check the resolver of this machine"}
	case errors.As(err, &address):
		known := networkFailure{firstError(cause, address), address.Err + ": " + address.Addr, ""}
		if address.Err == "invalid port" {
			known.remedy = "ports are 1 to 65535"
		}
		return known
	case errors.As(err, &certificate):
		return networkFailure{certificate, "its certificate is not trusted: " + strings.TrimPrefix(certificate.Err.Error(), "x509: "), "install the authority that signed it (ca-certificates), or correct the host"}
	case errors.As(err, &record):
		return networkFailure{record, "the server does not speak TLS", "write the URL without TLS, or correct the port"}
	case errors.As(err, &timeout) && timeout.Timeout():
		return networkFailure{firstError(cause, timeout), "no answer in time", ""}
	case isOperation && operation.Op == "dial" && operation.Addr != nil:
		return networkFailure{cause, rootError(operation).Error() + " by " + operation.Addr.String(), "no server runs there, or a firewall or proxy is in the way"}
	case isOperation && operation.Op == "listen" && operation.Addr != nil:
		return networkFailure{cause, "cannot listen on " + operation.Addr.String() + ": " + rootError(operation).Error(), ""}
	case isOperation:
		return networkFailure{cause, "the connection broke: " + strings.TrimPrefix(rootError(operation).Error(), "tls: "), ""}
	}

	return explainErrorText(err)
}

// explainErrorText describes errors that Go exposes only as text.
func explainErrorText(err error) networkFailure {
	// An io.EOF within other errors may be the end of a file.
	if outer := (*url.Error)(nil); err == io.EOF || errors.As(err, &outer) && outer.Err == io.EOF {
		return networkFailure{io.EOF, "the server closed the connection", ""}
	}
	for _, known := range []struct{ start, what, remedy string }{
		{"net/http: HTTP/1.x transport connection broken: malformed", "the server does not speak HTTP", "correct the port"},
		{"malformed HTTP", "the server does not speak HTTP", "correct the port"},
		{"readLoopPeekFailLocked: ", "the server does not speak HTTP", "correct the port"},
		{"http: server closed idle connection", "the server closed the connection", ""},
		{"http: server gave HTTP response to HTTPS client", "the server does not speak TLS", "write the URL without TLS, or correct the port"},
	} {
		if cause := starting(err, known.start); cause != nil {
			return networkFailure{cause, known.what, known.remedy}
		}
	}

	return networkFailure{}
}

// starting returns the outermost error with a text that begins with start, or nil.
func starting(err error, start string) error {
	if err == nil || strings.HasPrefix(err.Error(), start) {
		return err
	}
	if many, is := err.(interface{ Unwrap() []error }); is {
		for _, inner := range many.Unwrap() {
			if found := starting(inner, start); found != nil {
				return found
			}
		}
	}

	return starting(errors.Unwrap(err), start)
}

func firstError(outer, inner error) error {
	if outer != nil {
		return outer
	}

	return inner
}

func rootError(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
