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

// takes fails unless Take allows a change at a time, or delays it until another time.
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
	// A delayed change does not count, and a higher limit applies at once.
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

// A change that one limit delays does not count for the other. The later time applies.
func TestBothLimits(t *testing.T) {
	p := taker{T: t}
	p.takes(0, b, 2, 0, 0)
	p.takes(30*time.Second, a, 2, 1, 0)
	p.takes(40*time.Second, a, 2, 1, 90*time.Second)
	p.takes(60*time.Second, a, 2, 1, 90*time.Second)
	p.takes(61*time.Second, b, 2, 1, 0)
	p.takes(62*time.Second, b, 2, 1, 121*time.Second)
}

// TestWhatWaitsIsFirst: a delayed change is first in the next minute, even after other changes. A delayed
// resource that does not ask again blocks no change.
func TestWhatWaitsIsFirst(t *testing.T) {
	p := taker{T: t}
	p.takes(0, a, 1, 0, 0)
	p.takes(0, b, 1, 0, time.Minute)
	p.takes(time.Minute, a, 1, 0, 2*time.Minute)
	p.takes(time.Minute, b, 1, 0, 0)
	p.takes(2*time.Minute, b, 1, 0, 3*time.Minute)
	p.takes(3*time.Minute, b, 1, 0, 0)
	// Other resources have the rest of a larger limit.
	p.takes(3*time.Minute, a, 1, 0, 4*time.Minute)
	p.takes(4*time.Minute, b, 2, 0, 0)
	p.takes(4*time.Minute, b, 2, 0, 5*time.Minute)
	p.takes(4*time.Minute, a, 2, 0, 0)
	// A removed limit applies at once.
	p.takes(4*time.Minute, b, 0, 0, 0)
}

// TestEachHasATurn: each resource has a turn, even after many that change all the time.
func TestEachHasATurn(t *testing.T) {
	t.Parallel()
	const count, most = 13, 5
	var p runner.Pace
	changed := map[int]int{}
	for minute := range 2*count/most + 1 {
		// Each of them changes again as soon as possible.
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

// TestUnusedTurn: other resources have it at once, and GiveBack reports whether some wait.
func TestUnusedTurn(t *testing.T) {
	c := model.Ref{Type: "file", Name: "/c"}
	p := taker{T: t}
	p.takes(0, a, 1, 0, 0)
	p.takes(time.Second, b, 1, 0, time.Minute)
	p.takes(2*time.Second, c, 1, 0, time.Minute)
	p.takes(time.Minute, a, 1, 0, 2*time.Minute)
	p.takes(time.Minute, c, 1, 0, 2*time.Minute)
	// b has reached its state.
	if !p.GiveBack(b, time.Time{}) || p.GiveBack(b, time.Time{}) {
		t.Error("the turn of b is not given back, or twice")
	}
	p.takes(61*time.Second, a, 1, 0, 2*time.Minute)
	p.takes(61*time.Second, c, 1, 0, 0)
	// A change by another program does not count.
	if !p.GiveBack(c, begin.Add(61*time.Second)) {
		t.Error("the change of c is not given back")
	}
	p.takes(62*time.Second, a, 1, 0, 0)
	if p.GiveBack(a, begin.Add(62*time.Second)) {
		t.Error("nobody waits for it")
	}
	p.takes(63*time.Second, a, 1, 1, 0)
	p.takes(64*time.Second, b, 1, 0, 2*time.Minute)
	// The minute of the Take is over.
	p.takes(2*time.Minute, b, 1, 0, 0)
	p.GiveBack(a, begin.Add(63*time.Second))
	p.takes(2*time.Minute, c, 1, 0, 3*time.Minute)
}

// TestUnusedTurnOfAResource: it does not count for the limit of the resource.
func TestUnusedTurnOfAResource(t *testing.T) {
	p := taker{T: t}
	p.takes(0, a, 0, 1, 0)
	p.GiveBack(a, begin)
	p.takes(time.Second, a, 0, 1, 0)
	p.takes(2*time.Second, a, 0, 1, time.Minute)
}
