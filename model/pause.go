package model

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Pause makes nodes observe without changing anything (io.muster.v1.pause). It is the value of the control
// keys node.<node>.pause and group.<group>.pause.
type Pause struct {
	Protocol string `json:"protocol"`
	// Until is the end of the pause; zero means no end.
	Until time.Time `json:"until,omitzero" jsonschema_description:"End of the pause, by the clock of the server; absent for no end"`
	// By and Reason are not verified.
	By     string    `json:"by,omitempty" jsonschema_description:"Name of the operator; not verified"`
	Reason string    `json:"reason,omitempty" jsonschema_description:"Reason"`
	At     time.Time `json:"at,omitzero" jsonschema_description:"Time of the request"`
}

// Limits of control documents, in bytes.
const (
	maxControlBy     = 128
	maxControlReason = 512
	// MaxControl limits a control document without signatures.
	MaxControl = 8 << 10
)

// ErrInvalidControl means that a control document is not valid. It is permanent.
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

// isLine reports whether a text is one printable line of at most most bytes.
func isLine(text string, most int) bool {
	return len(text) <= most && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// Paused is the active pause of a node, with its control key.
type Paused struct {
	Until  time.Time `json:"until,omitzero" jsonschema_description:"End of the pause; absent for no end"`
	By     string    `json:"by,omitempty" jsonschema_description:"Name of the operator; not verified"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at,omitzero" jsonschema_description:"Time of the request"`
	// From is the key: node.<node>.pause or group.<group>.pause.
	From string `json:"from" jsonschema_description:"Control key of the pause"`
}

// String describes the pause: paused until 2026-01-31 11:29:48 UTC by ann: disk is replaced.
func (p Paused) String() string {
	text := strings.TrimSuffix("paused "+p.ends(), " ")
	if p.Reason != "" {
		text += ": " + p.Reason
	}

	return text
}

// Details returns String without the first word: until 2026-01-31 11:29:48 UTC by ann: disk is replaced.
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

// ends returns the end and the operator of the pause, empty if both are unknown.
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

// The control keys of a family, without its name.
const (
	ControlPause  = "pause"
	ControlLabels = "labels"
	ControlGroups = "groups"
)

// IsControlKey reports whether a key is a control key.
func IsControlKey(key string) bool {
	family, name, ok := SplitKey(key)

	return ok && (name == ControlPause || (name == ControlLabels || name == ControlGroups) && strings.HasPrefix(family, kindNode+"."))
}
