package compact

import (
	"math"
	"time"
)

// Instant is a time in a third of the memory, in UTC. What is further off than the years 1678 and 2262
// is there.
type Instant int64

// Never is the zero time.
const Never Instant = math.MinInt64

// InstantOf returns a time as an instant.
func InstantOf(t time.Time) Instant {
	const perSecond = int64(time.Second)
	switch seconds := t.Unix(); {
	case t.IsZero():
		return Never
	case seconds > math.MaxInt64/perSecond-1:
		return math.MaxInt64
	case seconds < math.MinInt64/perSecond+1:
		return Never + 1
	}

	return Instant(t.UnixNano())
}

// Time returns the time.
func (i Instant) Time() time.Time {
	if i == Never {
		return time.Time{}
	}

	return time.Unix(0, int64(i)).UTC()
}
