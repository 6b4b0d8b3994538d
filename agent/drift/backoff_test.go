package drift

import (
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
)

var begin = time.Unix(1_000_000, 0)

func at(d time.Duration) time.Time { return begin.Add(d) }

// TestFlappingBegins: one repair more than the limit within its period begins it.
func TestFlappingBegins(t *testing.T) {
	for name, c := range map[string]struct {
		limits model.Flapping
		every  time.Duration
		// begins is the number of the repair that begins it, zero if none of 20 does.
		begins int
		delay  time.Duration
	}{
		"often":            {model.DefaultFlapping, time.Second, 6, 12 * time.Second},
		"just often":       {model.DefaultFlapping, 12 * time.Second, 6, 12 * time.Second},
		"seldom":           {model.DefaultFlapping, 13 * time.Second, 0, 0},
		"off":              {model.Flapping{}, time.Millisecond, 0, 0},
		"another limit":    {model.Flapping{Repairs: 1, Within: model.Duration(time.Hour)}, time.Minute, 2, MaxDelay},
		"a short time":     {model.Flapping{Repairs: 10, Within: model.Duration(time.Second)}, time.Millisecond, 11, time.Second},
		"at the same time": {model.DefaultFlapping, 0, 6, 12 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			var b backoff
			began := 0
			for n := 1; n <= 20 && began == 0; n++ {
				now := at(time.Duration(n) * c.every)
				if b.repaired(now, c.limits) {
					began = n
					if !b.until.Equal(now.Add(c.delay)) || !b.since.Equal(now) {
						t.Errorf("delayed for %s since %s, want for %s since %s", b.until.Sub(now), b.since, c.delay, now)
					}
				}
			}
			if began != c.begins || b.flapping != (c.begins > 0) {
				t.Errorf("it flaps from repair %d on (%t), want %d", began, b.flapping, c.begins)
			}
		})
	}
}

// TestDelaysGrow: the delay between repairs grows up to MaxDelay.
func TestDelaysGrow(t *testing.T) {
	var b backoff
	for n := 1; !b.repaired(at(time.Duration(n)), model.DefaultFlapping); n++ {
	}
	for _, want := range []time.Duration{24 * time.Second, 48 * time.Second, 96 * time.Second, 192 * time.Second, MaxDelay, MaxDelay} {
		now := b.until
		if b.repaired(now, model.DefaultFlapping) {
			t.Error("it began twice")
		}
		if got := b.until.Sub(now); got != want {
			t.Errorf("delayed for %s, want %s", got, want)
		}
	}
}

// TestFlappingEnds: it ends after the period of the limits without a repair.
func TestFlappingEnds(t *testing.T) {
	var b backoff
	for n := 1; !b.repaired(at(time.Duration(n)), model.DefaultFlapping); n++ {
	}
	over := b.until.Add(time.Minute)
	if b.calm(over.Add(-1), model.DefaultFlapping) {
		t.Error("calm too early")
	}
	if !b.calmAt(model.DefaultFlapping).Equal(over) || !b.calm(over, model.DefaultFlapping) || b.flapping || !b.until.IsZero() {
		t.Errorf("not calm: %+v", b)
	}
	if b.calm(over.Add(time.Hour), model.DefaultFlapping) {
		t.Error("calm twice")
	}
}

// TestFlappingIsSwitchedOff: a new version of the manifest can disable it.
func TestFlappingIsSwitchedOff(t *testing.T) {
	var b backoff
	for n := 1; !b.repaired(at(time.Duration(n)), model.DefaultFlapping); n++ {
	}
	if b.repaired(b.until, model.Flapping{}) || b.flapping || !b.until.IsZero() {
		t.Errorf("it is still delayed: %+v", b)
	}
}

// TestIdleChecksAreDelayed: many checks in a row that find nothing are delayed until a repair or a pause.
func TestIdleChecksAreDelayed(t *testing.T) {
	var b backoff
	now := begin
	for range idleChecks {
		now = now.Add(time.Millisecond)
		b.nothingDue(now)
	}
	if !b.until.IsZero() {
		t.Fatalf("delayed after %d checks", idleChecks)
	}
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		now = model.LaterTime(now.Add(time.Millisecond), b.until)
		b.nothingDue(now)
		if got := b.until.Sub(now); got != want*time.Second {
			t.Errorf("delayed for %s, want %d s", got, want)
		}
	}
	rested := b
	rested.nothingDue(rested.until.Add(time.Minute))
	if rested.idle != 1 {
		t.Errorf("after a pause %d checks count", rested.idle)
	}
	b.repaired(b.until, model.DefaultFlapping)
	if b.idle != 0 || b.idleDelay != 0 {
		t.Errorf("after a repair the checks count: %+v", b)
	}
}
