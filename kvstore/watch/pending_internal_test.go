package watch

import (
	"fmt"
	"testing"
	"time"
)

// Each family has an equal part of a step.
func TestEachFamilyIsRead(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := newPending(3)
	for i := range 1000 {
		p.add(1, fmt.Sprint("group.web.", i), 1, now)
	}
	p.add(2, "group.all.motd", 1, now)
	p.add(2, "group.all.late", 1, now.Add(time.Hour))
	p.add(0, "node.web01.motd", 1, now)
	var last announcement
	found := map[int]int{}
	for i, a := range p.take(now) {
		if i > 0 && a.family < last.family {
			t.Errorf("%s after %s", a.key, last.key)
		}
		last = a
		found[a.family]++
	}
	if found[0] != 1 || found[1] != maxTaken/3 || found[2] != 1 {
		t.Errorf("taken of each family: %v", found)
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
