package api

import (
	"testing"
)

// FuzzPlace: an id that was sent is read as the place that it was, and what else a client
// sends is some place.
func FuzzPlace(f *testing.F) {
	for _, id := range []string{"", "7", "7.2", "18446744073709551615.1", "-1.-1", "1.99999999999999999999", "x.y"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		p := parsePlace(id)
		if again := parsePlace(p.String()); again != p {
			t.Errorf("%q is %+v, its id %q %+v", id, p, p, again)
		}
		if n := p.next(p.seq); p.n >= 0 && p.has(n) || !n.has(n) || p.has(p.next(p.seq+1)) {
			t.Errorf("%q: %+v, then %+v", id, p, n)
		}
		if p.after() > p.seq {
			t.Errorf("%q: after %d", id, p.after())
		}
	})
}
