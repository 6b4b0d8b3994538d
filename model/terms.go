package model

import (
	"fmt"
	"strings"
	"time"
)

// Terms are whether and how nodes run what is assigned, without the manifest.
type Terms struct {
	// Noop is that nodes only report what they would change.
	Noop bool `json:"noop,omitempty"`
	// When is the condition, evaluated on each node; cut where it is long.
	When     string    `json:"when,omitempty"`
	Expires  time.Time `json:"expires,omitzero"`
	Priority int       `json:"priority,omitempty"`
	Drift    Drift     `json:"drift,omitempty"`
	Interval Duration  `json:"interval,omitempty"`
	// Signed is that it has a signature, which only nodes verify.
	Signed bool `json:"signed,omitempty"`
}

// maxCondition is how many bytes of a condition are kept: terms are for lists.
const maxCondition = 1024

// Terms returns the terms of an assignment, nil where it has none.
func (a *Assignment) Terms(isSigned bool) *Terms {
	t := Terms{Noop: a.Noop, When: a.When, Expires: a.Expires, Priority: a.Priority, Drift: a.Drift, Interval: a.Interval, Signed: isSigned}
	if len(t.When) > maxCondition {
		t.When = strings.ToValidUTF8(t.When[:maxCondition], "") + " …"
	}
	if t == (Terms{}) {
		return nil
	}

	return &t
}

// Words are the terms in a few words each, what decides whether anything changes first. format is how a time is
// shown.
func (t *Terms) Words(now time.Time, format func(time.Time) string) []string {
	if t == nil {
		return nil
	}
	var out []string
	add := func(is bool, text string, args ...any) {
		if is {
			out = append(out, fmt.Sprintf(text, args...))
		}
	}
	expires := !t.Expires.IsZero()
	expired := expires && !t.Expires.After(now)
	add(expired, "expired %s", format(t.Expires))
	add(t.Noop, "noop")
	add(expires && !expired, "expires %s", format(t.Expires))
	add(t.Drift != "", "drift %s", t.Drift)
	add(t.Interval != 0, "interval %s", withoutZeros(t.Interval))
	add(t.Priority != 0, "priority %d", t.Priority)
	add(t.Signed, "signed")
	add(t.When != "", "when %s", t.When)

	return out
}

// withoutZeros returns a duration without the zeros at its end: 1h instead of 1h0m0s.
func withoutZeros(d Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}

	return text
}
