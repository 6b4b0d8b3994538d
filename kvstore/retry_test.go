package kvstore_test

import (
	"math"
	"testing"
	"time"

	"github.com/musterfleet/muster/kvstore"
)

// TestWholeSeconds are rounded up, for any length.
func TestWholeSeconds(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]time.Duration{
		-time.Hour:                      time.Second,
		0:                               time.Second,
		1:                               time.Second,
		time.Second:                     time.Second,
		time.Second + 1:                 2 * time.Second,
		math.MaxInt64:                   time.Duration(math.MaxInt64).Truncate(time.Second),
		math.MaxInt64 - 2*time.Second:   time.Duration(math.MaxInt64).Truncate(time.Second) - time.Second,
		math.MaxInt64 - time.Second + 1: time.Duration(math.MaxInt64).Truncate(time.Second),
	} {
		if got := kvstore.WholeSeconds(d); got != want {
			t.Errorf("%d: %d, want %d", d, got, want)
		}
	}
}
