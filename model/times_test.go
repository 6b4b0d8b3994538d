package model

import (
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	var zero time.Time
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	for _, c := range []struct{ a, b, earliest, sooner, later time.Time }{
		{early, late, early, early, late},
		{early, early, early, early, early},
		{zero, late, zero, late, late},
		{zero, zero, zero, zero, zero},
	} {
		for _, pair := range [][2]time.Time{{c.a, c.b}, {c.b, c.a}} {
			a, b := pair[0], pair[1]
			if got := EarlierTime(a, b); got != c.earliest {
				t.Errorf("the earliest of %s and %s is %s", a, b, got)
			}
			if got := EarlierNonZero(a, b); got != c.sooner {
				t.Errorf("the sooner of %s and %s is %s", a, b, got)
			}
			if got := LaterTime(a, b); got != c.later {
				t.Errorf("the later of %s and %s is %s", a, b, got)
			}
		}
	}
}
