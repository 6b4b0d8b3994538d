package status_test

import (
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/model"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// machine is a machine with a settable time of day.
type machine struct {
	*status.Clock
	passed, offset time.Duration
}

// newMachine returns a machine whose clock is ahead of the server's. The server's is at noon.
func newMachine(ahead time.Duration) *machine {
	m := &machine{offset: ahead}
	m.Clock = status.NewClock(func() time.Time { return noon.Add(m.passed + m.offset) }, func() time.Duration { return m.passed })

	return m
}

// ask has the machine ask the server what time it is, which takes a while; the answer is
// of a moment within.
func (m *machine) ask(request, answer time.Duration) bool {
	sent := m.Elapsed()
	m.passed += request
	server := noon.Add(m.passed)
	m.passed += answer

	return m.Measured(server, sent, m.Elapsed())
}

// The offset is within half the round trip, however that is divided.
func TestOffset(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ ahead, request, answer time.Duration }{
		"none":                    {0, time.Millisecond, time.Millisecond},
		"an hour ahead":           {time.Hour, time.Second, 0},
		"an hour behind":          {-time.Hour, 0, time.Second},
		"less than the roundtrip": {time.Second, 0, 4 * time.Second},
	} {
		m := newMachine(c.ahead)
		if got := m.Offset(); got != (model.ClockOffset{}) {
			t.Errorf("%s: %v before it is measured", name, got)
		}
		m.ask(c.request, c.answer)
		got := m.Offset()
		if wrong := (got.Offset.Std() - c.ahead).Abs(); wrong > got.Within.Std() || got.Within.Std() > (c.request+c.answer)/2+time.Second/100 {
			t.Errorf("%s: %v within %v", name, got.Offset, got.Within)
		}
	}
}

// An exact measurement counts until an equally exact later one, considering age, or until the server's time
// jumps.
func TestTheBestMeasurementCounts(t *testing.T) {
	t.Parallel()
	m := newMachine(time.Minute)
	m.ask(0, 0)
	m.passed += time.Minute
	m.ask(0, 2*time.Second)
	if got := m.Offset(); got.Offset.Std() != time.Minute || got.Within.Std() > 100*time.Millisecond {
		t.Errorf("after one that says less: %v within %v", got.Offset, got.Within)
	}
	m.passed += time.Hour
	m.ask(0, 2*time.Second)
	if got := m.Offset(); got.Offset.Std() == time.Minute {
		t.Errorf("an hour later: %v within %v", got.Offset, got.Within)
	}
	sent := m.Elapsed()
	m.passed += 10 * time.Second
	if !m.Measured(noon.Add(-time.Hour), sent, m.Elapsed()) || m.Offset().Offset.Std() < time.Hour {
		t.Errorf("another server: %v", m.Offset())
	}
}

// Expiry by the server's clock does not depend on the time of day; signed values expire by the faster clock.
func TestUntil(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ ahead, step, unsigned, signed time.Duration }{
		"right":                   {0, 0, 30 * time.Minute, 30 * time.Minute},
		"ahead":                   {time.Hour, 0, 30 * time.Minute, -30 * time.Minute},
		"behind":                  {-time.Hour, 0, 30 * time.Minute, 30 * time.Minute},
		"set an hour ahead":       {0, time.Hour, 30 * time.Minute, -30 * time.Minute},
		"set back by an hour":     {0, -time.Hour, 30 * time.Minute, 30 * time.Minute},
		"ahead, and then correct": {time.Hour, -time.Hour, 30 * time.Minute, 30 * time.Minute},
	} {
		m := newMachine(c.ahead)
		m.ask(0, 0)
		m.passed, m.offset = m.passed+30*time.Minute, m.offset+c.step
		at := noon.Add(time.Hour)
		if got := m.Until(at, false); got != c.unsigned {
			t.Errorf("%s: %v", name, got)
		}
		if got := m.Until(at, true); got != c.signed {
			t.Errorf("%s, signed: %v", name, got)
		}
	}
}

// While the server's time is unknown, the node's time counts.
func TestWithoutAServer(t *testing.T) {
	t.Parallel()
	m := newMachine(time.Hour)
	for _, signed := range []bool{true, false} {
		if got := m.Until(noon, signed); got != -time.Hour {
			t.Errorf("%v", got)
		}
	}
}

// A server that says anything revives nothing, and is believed again once it is right.
func TestAServerThatLies(t *testing.T) {
	t.Parallel()
	m := newMachine(0)
	for _, at := range []time.Time{{}, time.Unix(1<<40, 0), time.Unix(-1<<40, 0), noon.AddDate(-1, 0, 0), noon.AddDate(1, 0, 0)} {
		m.Measured(at, m.Elapsed(), m.Elapsed())
		if left := m.Until(noon.Add(-time.Second), true); left > 0 {
			t.Errorf("at %s what expired holds for %s", at, left)
		}
		if text := m.Offset().String(); text == "" {
			t.Errorf("at %s there is no text", at)
		}
		m.ask(0, time.Second)
		if got := m.Offset(); got.Offset.Std().Abs() > time.Second {
			t.Errorf("after %s: %v", at, got)
		}
	}
}

// Measured reports a change of the offset once, also a change by the node.
func TestMoved(t *testing.T) {
	t.Parallel()
	m := newMachine(0)
	for i, c := range []struct {
		step time.Duration
		want bool
	}{{0, false}, {2 * time.Second, true}, {0, false}, {-time.Hour, true}, {500 * time.Millisecond, false}, {600 * time.Millisecond, true}} {
		m.offset += c.step
		if got := m.ask(0, 0); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}
