package model

import (
	"fmt"
	"io"
	"log/slog"
)

// Redacted replaces a secret wherever it would be shown.
const Redacted = "[redacted]"

// Secret is a string that no log, diff, report, error or document shows: every
// way of printing or encoding it gives Redacted. Only Reveal returns the value,
// for the process or file that is meant to have it. The zero value is an empty
// secret.
type Secret struct {
	value   string
	derived bool
}

// NewSecret makes a secret of s.
func NewSecret(s string) Secret { return Secret{value: s} }

// NewDerived makes a secret of a text that came of one, such as "enabled" where a
// password is set. It is not shown, but no redactor searches for it.
func NewDerived(s string) Secret { return Secret{value: s, derived: true} }

// IsDerived reports whether the text only came of a secret.
func (s Secret) IsDerived() bool { return s.derived }

// Reveal returns the value itself. Call it only where the value goes to the
// process or file it is meant for.
func (s Secret) Reveal() string { return s.value }

// String returns Redacted.
func (Secret) String() string { return Redacted }

// GoString returns Redacted, for %#v.
func (Secret) GoString() string { return Redacted }

// Format returns Redacted for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Redacted) }

// MarshalText returns Redacted, for JSON, YAML and everything that encodes text.
func (Secret) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// LogValue returns Redacted, for slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(Redacted) }
