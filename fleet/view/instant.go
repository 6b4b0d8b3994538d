package view

import (
	"math"
	"time"
)

// instant is a compact UTC time, limited to the years 1678 to 2262.
type instant int64

// never is the zero time.
const never instant = math.MinInt64

// instantOf returns a time as an instant.
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
