package watch

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Few keys wait, whatever the server announces. Each family has a share of a batch. A family with dropped
// announcements is compared instead.
func TestPendingIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := newPending(3)
	for i := range 10 * maxPending {
		p.add(1, fmt.Sprint("group.web.", i), 1, now)
	}
	for i := range maxPending {
		p.add(2, fmt.Sprint("group.all.", i, strings.Repeat("x", 64<<10)), 1, now)
	}
	p.add(2, "group.all.late", 1, now.Add(time.Hour))
	p.add(0, "node.web01.motd", 1, now)
	if keys, bytes := len(p.queues[1].keys), p.queues[2].bytes; keys != maxPending || bytes > maxPendingBytes {
		t.Errorf("%d keys, %d bytes wait", keys, bytes)
	}
	var last announcement
	found := map[int]int{}
	for i, a := range p.take(now) {
		if i > 0 && a.family < last.family {
			t.Errorf("%s after %s", a.key, last.key)
		}
		last = a
		found[a.family]++
	}
	if found[0] != 1 || found[1] != maxTaken/3 || found[2] == 0 {
		t.Errorf("taken of each family: %v", found)
	}
	if lost := p.overflowed(); fmt.Sprint(lost) != "[1 2]" || len(p.overflowed()) != 0 {
		t.Errorf("compared instead: %v", lost)
	}
}

// TestAnOlderAnnouncementChangesNothing: of a key that waits, the newest announced revision is awaited.
func TestAnOlderAnnouncementChangesNothing(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := newPending(1)
	add := func(sequence uint64) { p.add(0, "node.web01.pause", sequence, now) }
	add(8)
	add(7)
	first := p.take(now)[0]
	add(6)
	p.again(first)
	if again := p.take(now)[0]; first.sequence != 8 || again.sequence != 8 {
		t.Errorf("awaited: %d, then %d", first.sequence, again.sequence)
	}
}

// TestOverflowIsComparedSoon, however often it is noticed.
func TestOverflowIsComparedSoon(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := part{at: now.Add(time.Hour)}
	for range 100 {
		p.overflow(now, 0, time.Second)
	}
	if p.at != now {
		t.Errorf("compared in %s", p.at.Sub(now))
	}
	p.at = now.Add(time.Hour) // it was compared
	for range 100 {
		p.overflow(now, 0, time.Second)
	}
	if next := p.at.Sub(now); next != overflowPause*time.Second {
		t.Errorf("compared again in %s", next)
	}
}
