// Package neterr has words for errors of the network: what failed, and what to do
// about it.
package neterr

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
)

// Remedy returns what to do about an error of the network, empty where that is unknown.
func Remedy(err error) string { return explain(err).remedy }

// Words returns the text of an error, with what Go says about the network in words.
func Words(err error) string {
	known := explain(err)
	if known.cause == nil {
		return err.Error()
	}

	return strings.Replace(err.Error(), known.cause.Error(), known.what, 1)
}

// failure is what failed on the network, and what to do about it; cause is the part
// of an error that is of the network, nil for none.
type failure struct {
	cause        error
	what, remedy string
}

// explain returns what an error says about the network.
func explain(err error) failure {
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
		return failure{first(cause, name), "cannot resolve " + name.Name + ": " + name.Err, "correct the name, or check the resolver of this machine"}
	case errors.As(err, &address):
		known := failure{first(cause, address), address.Err + ": " + address.Addr, ""}
		if address.Err == "invalid port" {
			known.remedy = "ports are 1 to 65535"
		}
		return known
	case errors.As(err, &certificate):
		return failure{certificate, "its certificate is not trusted: " + strings.TrimPrefix(certificate.Err.Error(), "x509: "), "install the authority that signed it (ca-certificates), or correct the host"}
	case errors.As(err, &record):
		return failure{record, "the server does not speak TLS", "write the URL without TLS, or correct the port"}
	case errors.As(err, &timeout) && timeout.Timeout():
		return failure{first(cause, timeout), "no answer in time", ""}
	case isOperation && operation.Op == "dial" && operation.Addr != nil:
		return failure{cause, root(operation).Error() + " by " + operation.Addr.String(), "no server runs there, or a firewall or proxy is in the way"}
	case isOperation && operation.Op == "listen" && operation.Addr != nil:
		return failure{cause, "cannot listen on " + operation.Addr.String() + ": " + root(operation).Error(), ""}
	case isOperation:
		return failure{cause, "the connection broke: " + strings.TrimPrefix(root(operation).Error(), "tls: "), ""}
	}

	return explainText(err)
}

// explainText is explain for errors for which Go has a text, but no value.
func explainText(err error) failure {
	// Within another error it may be the end of a file.
	if outer := (*url.Error)(nil); err == io.EOF || errors.As(err, &outer) && outer.Err == io.EOF {
		return failure{io.EOF, "the server closed the connection", ""}
	}
	for _, known := range []struct{ start, what, remedy string }{
		{"net/http: HTTP/1.x transport connection broken: malformed", "the server does not speak HTTP", "correct the port"},
		{"malformed HTTP", "the server does not speak HTTP", "correct the port"},
		{"readLoopPeekFailLocked: ", "the server does not speak HTTP", "correct the port"},
		{"http: server closed idle connection", "the server closed the connection", ""},
		{"http: server gave HTTP response to HTTPS client", "the server does not speak TLS", "write the URL without TLS, or correct the port"},
	} {
		if cause := starting(err, known.start); cause != nil {
			return failure{cause, known.what, known.remedy}
		}
	}

	return failure{}
}

// starting returns the outermost error whose text has this start, nil for none.
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

func first(outer, inner error) error {
	if outer != nil {
		return outer
	}

	return inner
}

// root returns the innermost error.
func root(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
