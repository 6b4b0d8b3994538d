package tasks

import "testing"

func TestBackoff(t *testing.T) {
	var b Backoff
	for i := range 40 {
		d, full := b.Next(), min(firstWait<<min(i, 20), longestWait)
		if d < full/2 || d > full*3/2 {
			t.Errorf("try %d waits %s", i, d)
		}
	}
	b.Reset()
	if d := b.Next(); d > 2*firstWait {
		t.Errorf("after a success it waits %s", d)
	}
}
