package model

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Pause has nodes observe and change nothing (io.muster.v1.pause). It is the value of the
// control keys node.<node>.pause and group.<group>.pause.
type Pause struct {
	Protocol string `json:"protocol"`
	// Until is when it ends by itself; zero is never.
	Until time.Time `json:"until,omitzero" jsonschema_description:"When it ends by itself, by the clock of the server; missing for never"`
	// By is who asked for it, and Reason why: nobody has verified either.
	By     string    `json:"by,omitempty" jsonschema_description:"Who asked for it"`
	Reason string    `json:"reason,omitempty" jsonschema_description:"Why"`
	At     time.Time `json:"at,omitzero" jsonschema_description:"When it was asked for"`
}

// The bounds of what operators write about nodes, in bytes.
const (
	maxControlBy     = 128
	maxControlReason = 512
	// MaxControl is the whole of a control document, without signatures.
	MaxControl = 8 << 10
)

// ErrInvalidControl is a control document that is none, or that is not valid; it never
// becomes valid by trying again.
var ErrInvalidControl = errors.New("invalid control document")

// DecodePause decodes a pause strictly. The error wraps ErrInvalidControl.
func DecodePause(data []byte) (Pause, error) {
	var p Pause
	if len(data) > MaxControl {
		return p, fmt.Errorf("%w: %d bytes, at most %d are read", ErrInvalidControl, len(data), MaxControl)
	}
	if err := DecodeStrict(data, &p); err != nil {
		return Pause{}, fmt.Errorf("%w: %w", ErrInvalidControl, err)
	}

	return p, p.Check()
}

// Check reports whether a pause is valid; the error wraps ErrInvalidControl.
func (p Pause) Check() error {
	switch {
	case p.Protocol != ProtocolPause:
		return fmt.Errorf("%w: its protocol is not %s", ErrInvalidControl, ProtocolPause)
	case !isLine(p.By, maxControlBy):
		return fmt.Errorf("%w: by must be one line of at most %d bytes", ErrInvalidControl, maxControlBy)
	case !isLine(p.Reason, maxControlReason):
		return fmt.Errorf("%w: reason must be one line of at most %d bytes", ErrInvalidControl, maxControlReason)
	default:
		return nil
	}
}

// isLine reports whether a text is printable, one line, and not longer than most bytes.
func isLine(text string, most int) bool {
	return len(text) <= most && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// Paused is the pause that holds on a node, and the control key that it comes from.
type Paused struct {
	Until  time.Time `json:"until,omitzero" jsonschema_description:"When it ends by itself; missing for never"`
	By     string    `json:"by,omitempty" jsonschema_description:"Who asked for it"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at,omitzero" jsonschema_description:"When it was asked for"`
	// From is the key: node.<node>.pause or group.<group>.pause.
	From string `json:"from" jsonschema_description:"Control key that it comes from"`
}

// String describes it for people: paused until 2026-01-31 11:29:48 UTC by ann: disk is replaced.
func (p Paused) String() string {
	text := strings.TrimSuffix("paused "+p.ends(), " ")
	if p.Reason != "" {
		text += ": " + p.Reason
	}

	return text
}

// Details is String without the first word: until 2026-01-31 11:29:48 UTC by ann: disk is replaced.
func (p Paused) Details() string {
	text := p.ends()
	switch {
	case p.Reason == "":
		return text
	case text == "":
		return p.Reason
	default:
		return text + ": " + p.Reason
	}
}

// ends returns until when and by whom it is, empty where neither is known.
func (p Paused) ends() string {
	text := ""
	if !p.Until.IsZero() {
		text = "until " + p.Until.Local().Format(TimeFormat)
	}
	if p.By != "" {
		text += " by " + p.By
	}

	return strings.TrimPrefix(text, " ")
}

// The control keys of a family, behind its name.
const (
	ControlPause  = "pause"
	ControlLabels = "labels"
	ControlGroups = "groups"
)

// IsControlKey reports whether a key is one that operators write about nodes.
func IsControlKey(key string) bool {
	family, name, ok := SplitKey(key)

	return ok && (name == ControlPause || (name == ControlLabels || name == ControlGroups) && strings.HasPrefix(family, kindNode+"."))
}
