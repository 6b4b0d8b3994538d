package view

import (
	"math"
	"time"
)

// Instant is a time in a third of the memory, in UTC. What is further off than the years 1678 and 2262
// is there.
type instant int64

// Never is the zero time.
const never instant = math.MinInt64

// InstantOf returns a time as an instant.
func instantOf(t time.Time) instant {
	const perSecond = int64(time.Second)
	switch seconds := t.Unix(); {
	case t.IsZero():
		return never
	case seconds > math.MaxInt64/perSecond-1:
		return math.MaxInt64
	case seconds < math.MinInt64/perSecond+1:
		return never + 1
	}

	return instant(t.UnixNano())
}

// Time returns the time.
func (i instant) Time() time.Time {
	if i == never {
		return time.Time{}
	}

	return time.Unix(0, int64(i)).UTC()
}
