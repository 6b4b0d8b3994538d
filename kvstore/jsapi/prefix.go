// Package jsapi finds where JetStream is asked: its subjects have a prefix of their own in
// each account.
package jsapi

import "strings"

// Prefix begins the subjects by which JetStream is asked.
type Prefix string

const (
	// Own is that of an account with JetStream.
	Own Prefix = "$JS.API"
	// Joined is that of an account that is joined with one with JetStream, as
	// muster fleet accounts joins NODES with FLEET.
	Joined Prefix = "fleet.API"
)

// IsOwn reports whether it is that of an account with streams, where the server
// publishes its answers wherever a user asks it to.
func (p Prefix) IsOwn() bool { return strings.HasPrefix(string(p), "$JS.") }

// Subject returns the subject of an operation on something.
func (p Prefix) Subject(tokens ...string) string {
	return strings.Join(append([]string{string(p)}, tokens...), ".")
}

// StreamList is the subject that lists streams.
func (p Prefix) StreamList() string { return p.Subject("STREAM.LIST") }

// StreamInfo is the subject that asks for the configuration, the state and the
// subjects of a stream.
func (p Prefix) StreamInfo(stream string) string { return p.Subject("STREAM.INFO", stream) }

// DirectGet is the subject that asks for the newest message of a subject, or, for
// none, for any message by a request body.
func (p Prefix) DirectGet(stream, subject string) string {
	if subject == "" {
		return p.Subject("DIRECT.GET", stream)
	}

	return p.Subject("DIRECT.GET", stream, subject)
}

// Next is the subject that asks a consumer of a stream for messages.
func (p Prefix) Next(stream, consumer string) string {
	return p.Subject("CONSUMER.MSG.NEXT", stream, consumer)
}

// About concerns requests to JetStream about a stream.
func (p Prefix) About(stream string) func(string) bool {
	return func(subject string) bool {
		return strings.HasPrefix(subject, p.Subject("")) && strings.Contains(subject+".", "."+stream+".")
	}
}
