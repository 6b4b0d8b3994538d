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

// ClockOffset is the difference between the clocks of a node and its NATS server.
type ClockOffset struct {
	Offset Offset   `json:"offset" jsonschema_description:"How far the node's clock is ahead; negative if it is behind"`
	Within Duration `json:"within" jsonschema_description:"Maximum error: half the round trip of the measurement, plus the clock drift since"`
}

// apparentOffset is the smallest offset that muster reports.
const apparentOffset = 5 * time.Second

// Apparent reports whether the clocks differ by at least 5 seconds and by more than the measurement error.
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
