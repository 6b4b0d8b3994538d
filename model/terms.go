package model

import (
	"fmt"
	"strings"
	"time"
)

// Terms are the settings of an assignment, without its manifest.
type Terms struct {
	// Noop means that nodes only report changes.
	Noop bool `json:"noop,omitempty"`
	// When is the condition that each node evaluates. A long condition is cut.
	When     string    `json:"when,omitempty"`
	Expires  time.Time `json:"expires,omitzero"`
	Priority int       `json:"priority,omitempty"`
	Drift    Drift     `json:"drift,omitempty"`
	Interval Duration  `json:"interval,omitempty"`
	// Signed means that the assignment has a signature. Only nodes verify it.
	Signed bool `json:"signed,omitempty"`
}

// maxCondition limits the bytes of a condition in a list.
const maxCondition = 1024

// Terms returns the settings of an assignment, nil if all have their defaults.
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

// Words describes each setting in a few words. Settings that prevent changes come first. format formats a
// time.
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

// withoutZeros returns the text of a duration without trailing zeros: 1h instead of 1h0m0s.
func withoutZeros(d Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}

	return text
}
