package signed

import (
	"errors"
	"fmt"
	"time"
)

// Errors of the time of signing.
var (
	// ErrOlder means that the node already accepted an envelope that was signed later.
	ErrOlder = errors.New("older than an accepted signature")
	// ErrExpired means that the envelope expired.
	ErrExpired = errors.New("the signature expired")
	// ErrFuture means that the envelope was signed in the future. This error is temporary.
	ErrFuture = errors.New("signed in the future")
)

// MaxSkew is the largest accepted difference between the clocks of operators and nodes.
const MaxSkew = 5 * time.Minute

// MaxRequest limits the validity of an ensure request. Nodes remember executed requests for longer.
const MaxRequest = 24 * time.Hour

// Mark identifies the last accepted envelope of a target.
type Mark struct {
	Issued time.Time `json:"issued"`
	Sum    string    `json:"sum"`
}

// Fresh returns an error unless a node may accept an envelope at a time after the last accepted one. The same
// envelope may be accepted again. The error wraps ErrOlder, ErrExpired or ErrFuture.
func (e *Envelope) Fresh(now time.Time, last Mark) error {
	s := e.Statement
	switch {
	case s.Issued.After(now.Add(MaxSkew)):
		return fmt.Errorf("%w: at %s, here it is %s", ErrFuture, s.Issued.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case !now.Before(s.Expires):
		return fmt.Errorf("%w at %s, here it is %s", ErrExpired, s.Expires.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case s.Issued.Before(last.Issued), s.Issued.Equal(last.Issued) && e.Sum != last.Sum:
		return fmt.Errorf("%w: signed at %s, the accepted one at %s", ErrOlder, s.Issued.UTC().Format(time.RFC3339Nano), last.Issued.UTC().Format(time.RFC3339Nano))
	default:
		return nil
	}
}
