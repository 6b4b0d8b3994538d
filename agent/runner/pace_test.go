package runner_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/runner"
	"github.com/musterfleet/muster/model"
)

var (
	begin = time.Unix(1_000_000, 0)
	a, b  = model.Ref{Type: "file", Name: "/a"}, model.Ref{Type: "file", Name: "/b"}
)

// taker takes changes at times after begin.
type taker struct {
	*testing.T
	runner.Pace
}

// takes fails unless a change may be made after a time, or is put off until another one.
func (p *taker) takes(at time.Duration, ref model.Ref, most, each int, until time.Duration) {
	p.Helper()
	want := time.Time{}
	if until > 0 {
		want = begin.Add(until)
	}
	if got := p.Take(ref, most, each, begin.Add(at)); !got.Equal(want) {
		p.Errorf("%s at %s: put off until %s, want %s", ref, at, got, want)
	}
}

func TestLimitOfAManifest(t *testing.T) {
	p := taker{T: t}
	p.takes(0, a, 2, 0, 0)
	p.takes(10*time.Second, b, 2, 0, 0)
	p.takes(20*time.Second, a, 2, 0, time.Minute)
	p.takes(30*time.Second, b, 2, 0, time.Minute)
	// One that was put off does not count, and a limit that is higher now holds at once.
	p.takes(40*time.Second, b, 3, 0, 0)
	p.takes(50*time.Second, a, 0, 0, 0)
	// The next minute begins with its first change.
	p.takes(90*time.Second, a, 1, 0, 0)
	p.takes(140*time.Second, b, 1, 0, 150*time.Second)
	p.takes(150*time.Second, b, 1, 0, 0)
}

func TestLimitOfAResource(t *testing.T) {
	p := taker{T: t}
	p.takes(0, a, 0, 1, 0)
	p.takes(time.Second, a, 0, 1, time.Minute)
	p.takes(2*time.Second, b, 0, 1, 0)
	p.takes(3*time.Second, b, 0, 0, 0)
	p.takes(61*time.Second, a, 0, 1, 0)
}

// What one limit puts off does not count for the other; the later time holds.
func TestBothLimits(t *testing.T) {
	p := taker{T: t}
	p.takes(0, b, 2, 0, 0)
	p.takes(30*time.Second, a, 2, 1, 0)
	p.takes(40*time.Second, a, 2, 1, 90*time.Second)
	p.takes(60*time.Second, a, 2, 1, 90*time.Second)
	p.takes(61*time.Second, b, 2, 1, 0)
	p.takes(62*time.Second, b, 2, 1, 121*time.Second)
}

// TestWhatWaitsIsFirst in the next minute, whatever changes at each run before it; one that
// does not come keeps nobody for longer.
func TestWhatWaitsIsFirst(t *testing.T) {
	p := taker{T: t}
	p.takes(0, a, 1, 0, 0)
	p.takes(0, b, 1, 0, time.Minute)
	p.takes(time.Minute, a, 1, 0, 2*time.Minute)
	p.takes(time.Minute, b, 1, 0, 0)
	p.takes(2*time.Minute, b, 1, 0, 3*time.Minute)
	p.takes(3*time.Minute, b, 1, 0, 0)
	// Of a larger limit the others have the rest.
	p.takes(3*time.Minute, a, 1, 0, 4*time.Minute)
	p.takes(4*time.Minute, b, 2, 0, 0)
	p.takes(4*time.Minute, b, 2, 0, 5*time.Minute)
	p.takes(4*time.Minute, a, 2, 0, 0)
	// A limit that is lifted holds at once.
	p.takes(4*time.Minute, b, 0, 0, 0)
}

// TestEachHasATurn, however many change all the time before it.
func TestEachHasATurn(t *testing.T) {
	t.Parallel()
	const count, most = 13, 5
	var p runner.Pace
	changed := map[int]int{}
	for minute := range 2*count/most + 1 {
		// Each of them changes again as soon as it may.
		for range 3 {
			for i := range count {
				ref := model.Ref{Type: "file", Name: strconv.Itoa(i)}
				if p.Take(ref, most, 0, begin.Add(time.Duration(minute)*runner.Within)).IsZero() {
					changed[i]++
				}
			}
		}
	}
	for i := range count {
		if changed[i] < 2 || changed[i] > 3 {
			t.Errorf("of %d changes that each wants, number %d made %d", 2*count+most, i, changed[i])
		}
	}
}

// TestUnusedTurn is left to others at once, and reported where some wait.
func TestUnusedTurn(t *testing.T) {
	c := model.Ref{Type: "file", Name: "/c"}
	p := taker{T: t}
	p.takes(0, a, 1, 0, 0)
	p.takes(time.Second, b, 1, 0, time.Minute)
	p.takes(2*time.Second, c, 1, 0, time.Minute)
	p.takes(time.Minute, a, 1, 0, 2*time.Minute)
	p.takes(time.Minute, c, 1, 0, 2*time.Minute)
	// b is in its state by now.
	if !p.GiveBack(b, time.Time{}) || p.GiveBack(b, time.Time{}) {
		t.Error("the turn of b is not given back, or twice")
	}
	p.takes(61*time.Second, a, 1, 0, 2*time.Minute)
	p.takes(61*time.Second, c, 1, 0, 0)
	// What was changed by somebody else meanwhile is no change either.
	if !p.GiveBack(c, begin.Add(61*time.Second)) {
		t.Error("the change of c is not given back")
	}
	p.takes(62*time.Second, a, 1, 0, 0)
	if p.GiveBack(a, begin.Add(62*time.Second)) {
		t.Error("nobody waits for it")
	}
	p.takes(63*time.Second, a, 1, 1, 0)
	p.takes(64*time.Second, b, 1, 0, 2*time.Minute)
	// The minute in which it was taken is over.
	p.takes(2*time.Minute, b, 1, 0, 0)
	p.GiveBack(a, begin.Add(63*time.Second))
	p.takes(2*time.Minute, c, 1, 0, 3*time.Minute)
}

// TestUnusedTurnOfAResource counts for no limit of its own either.
func TestUnusedTurnOfAResource(t *testing.T) {
	p := taker{T: t}
	p.takes(0, a, 0, 1, 0)
	p.GiveBack(a, begin)
	p.takes(time.Second, a, 0, 1, 0)
	p.takes(2*time.Second, a, 0, 1, time.Minute)
}
