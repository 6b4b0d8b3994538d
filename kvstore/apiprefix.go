package kvstore

import "strings"

// APIPrefix is the subject prefix of the JetStream API.
type APIPrefix string

const (
	// OwnAPI is the prefix in an account with JetStream.
	OwnAPI APIPrefix = "$JS.API"
	// JoinedAPI is the prefix in an account that imports from the fleet's account, such as NODES.
	JoinedAPI APIPrefix = "fleet.API"
)

// IsOwn reports whether the account has the streams. There the server publishes answers to any subject
// that a user chooses.
func (p APIPrefix) IsOwn() bool { return strings.HasPrefix(string(p), "$JS.") }

// Subject returns the subject of an operation.
func (p APIPrefix) Subject(tokens ...string) string {
	return strings.Join(append([]string{string(p)}, tokens...), ".")
}

// StreamList returns the subject that lists streams.
func (p APIPrefix) StreamList() string { return p.Subject("STREAM.LIST") }

// StreamInfo returns the subject that requests the configuration, the state and the subjects of a
// stream.
func (p APIPrefix) StreamInfo(stream string) string { return p.Subject("STREAM.INFO", stream) }

// DirectGet returns the subject that reads the newest message of a subject. With an empty subject, the
// request body selects the messages.
func (p APIPrefix) DirectGet(stream, subject string) string {
	if subject == "" {
		return p.Subject("DIRECT.GET", stream)
	}

	return p.Subject("DIRECT.GET", stream, subject)
}

// Next returns the subject that requests messages of a consumer.
func (p APIPrefix) Next(stream, consumer string) string {
	return p.Subject("CONSUMER.MSG.NEXT", stream, consumer)
}

// About returns a function that reports whether a subject is a JetStream request about a stream.
func (p APIPrefix) About(stream string) func(string) bool {
	return func(subject string) bool {
		return strings.HasPrefix(subject, p.Subject("")) && strings.Contains(subject+".", "."+stream+".")
	}
}
