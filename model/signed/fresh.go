package signed

import (
	"errors"
	"fmt"
	"time"
)

// What a node refuses by the time of signing.
var (
	// ErrOlder is an envelope that was signed before one that was accepted.
	ErrOlder = errors.New("older than what was accepted")
	// ErrExpired is an envelope whose time is over.
	ErrExpired = errors.New("the signature expired")
	// ErrFuture is an envelope that was signed later than now. It passes.
	ErrFuture = errors.New("signed in the future")
)

// MaxSkew is how far the clocks of operators and nodes may be apart.
const MaxSkew = 5 * time.Minute

// MaxRequest is how long an ensure request may be valid: nodes remember longer what
// they executed.
const MaxRequest = 24 * time.Hour

// Mark is the envelope that was accepted last for a target.
type Mark struct {
	Issued time.Time `json:"issued"`
	Sum    string    `json:"sum"`
}

// Fresh reports whether an envelope is accepted at a time, after what the mark has.
// The same envelope again is. The error wraps ErrOlder, ErrExpired or ErrFuture.
func (e *Envelope) Fresh(now time.Time, last Mark) error {
	s := e.Statement
	switch {
	case s.Issued.After(now.Add(MaxSkew)):
		return fmt.Errorf("%w: at %s, here it is %s", ErrFuture, s.Issued.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case !now.Before(s.Expires):
		return fmt.Errorf("%w at %s, here it is %s", ErrExpired, s.Expires.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case s.Issued.Before(last.Issued), s.Issued.Equal(last.Issued) && e.Sum != last.Sum:
		return fmt.Errorf("%w: signed at %s, accepted was what was signed at %s", ErrOlder, s.Issued.UTC().Format(time.RFC3339Nano), last.Issued.UTC().Format(time.RFC3339Nano))
	default:
		return nil
	}
}
