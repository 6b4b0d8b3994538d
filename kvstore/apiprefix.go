package kvstore

import "strings"

// Prefix begins the subjects by which JetStream is asked.
type APIPrefix string

const (
	// Own is that of an account with JetStream.
	OwnAPI APIPrefix = "$JS.API"
	// Joined is that of an account that is joined with one with JetStream, as
	// muster fleet accounts joins NODES with FLEET.
	JoinedAPI APIPrefix = "fleet.API"
)

// IsOwn reports whether it is that of an account with streams, where the server
// publishes its answers wherever a user asks it to.
func (p APIPrefix) IsOwn() bool { return strings.HasPrefix(string(p), "$JS.") }

// Subject returns the subject of an operation on something.
func (p APIPrefix) Subject(tokens ...string) string {
	return strings.Join(append([]string{string(p)}, tokens...), ".")
}

// StreamList is the subject that lists streams.
func (p APIPrefix) StreamList() string { return p.Subject("STREAM.LIST") }

// StreamInfo is the subject that asks for the configuration, the state and the
// subjects of a stream.
func (p APIPrefix) StreamInfo(stream string) string { return p.Subject("STREAM.INFO", stream) }

// DirectGet is the subject that asks for the newest message of a subject, or, for
// none, for any message by a request body.
func (p APIPrefix) DirectGet(stream, subject string) string {
	if subject == "" {
		return p.Subject("DIRECT.GET", stream)
	}

	return p.Subject("DIRECT.GET", stream, subject)
}

// Next is the subject that asks a consumer of a stream for messages.
func (p APIPrefix) Next(stream, consumer string) string {
	return p.Subject("CONSUMER.MSG.NEXT", stream, consumer)
}

// About concerns requests to JetStream about a stream.
func (p APIPrefix) About(stream string) func(string) bool {
	return func(subject string) bool {
		return strings.HasPrefix(subject, p.Subject("")) && strings.Contains(subject+".", "."+stream+".")
	}
}
