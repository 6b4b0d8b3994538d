package model

import (
	"fmt"
	"time"
)

// Offset is a duration with a sign, written as text in documents: 1h0m0s, -250ms.
type Offset time.Duration

// Std returns the standard library's duration.
func (o Offset) Std() time.Duration { return time.Duration(o) }

// String returns the text form, for example -1m30s.
func (o Offset) String() string { return time.Duration(o).String() }

// MarshalText returns the text form.
func (o Offset) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads the text form; a number without a unit is an error.
func (o *Offset) UnmarshalText(b []byte) error {
	parsed, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("invalid offset %q, write it with its unit, for example -30s", b)
	}
	*o = Offset(parsed)

	return nil
}

// ClockOffset is how the clock of a node differs from that of its NATS server.
type ClockOffset struct {
	Offset Offset   `json:"offset" jsonschema_description:"How far the node's clock is ahead; negative where it is behind"`
	Within Duration `json:"within" jsonschema_description:"How exact that is: half the round trip by which it was measured, and what clocks drift since"`
}

// apparentOffset is the offset from which clocks count as different.
const apparentOffset = 5 * time.Second

// Apparent reports whether the clocks differ by 5 seconds at least, and by more than the
// measurement may be wrong.
func (c ClockOffset) Apparent() bool {
	return c.distance() >= max(apparentOffset, c.Within.Std())
}

func (c ClockOffset) distance() time.Duration { return c.Offset.Std().Abs() }

// String describes the difference, for example "1h0m0s ahead of the NATS server's".
func (c ClockOffset) String() string {
	side := "ahead of"
	if c.Offset < 0 {
		side = "behind"
	}
	unit := time.Millisecond
	if c.Apparent() {
		unit = time.Second
	}

	return fmt.Sprintf("%s %s the NATS server's", c.distance().Round(unit), side)
}
