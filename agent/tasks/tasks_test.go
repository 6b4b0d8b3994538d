package tasks

import "testing"

func TestBackoff(t *testing.T) {
	var b Backoff
	for i := range 40 {
		d, full := b.Next(), min(FirstWait<<min(i, 20), LongestWait)
		if d < full/2 || d > full*3/2 {
			t.Errorf("try %d waits %s", i, d)
		}
	}
	b.Reset()
	if d := b.Next(); d > 2*FirstWait {
		t.Errorf("after a success it waits %s", d)
	}
}
