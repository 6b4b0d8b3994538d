package kvstore

import (
	"testing"
	"time"
)

// TestOutdatedRemoval tests which removals nodes ignore: removals from before the revision that they run, as in a restored
// bucket.
func TestOutdatedRemoval(t *testing.T) {
	t.Parallel()
	now := time.Now()
	removal := func(age time.Duration) Message {
		return Message{Header: NewDeletion("$KV.MUSTER_MANIFESTS.group.web.motd").Header, Sequence: 5, Time: now.Add(-age)}
	}
	forged := removal(time.Hour)
	forged.Forged = true
	for _, c := range []struct {
		what     string
		m        Message
		revision uint64
		want     bool
	}{
		{"of the revision that nodes run", removal(time.Hour), 4, false},
		{"of an earlier revision", removal(time.Hour), 6, true},
		{"just stored in a bucket that was created again", removal(time.Second), 6, false},
		{"no removal", Message{Sequence: 5, Time: now.Add(-time.Hour)}, 6, false},
		{"forged", forged, 6, false},
	} {
		if got := isOutdated(c.m, c.revision, now); got != c.want {
			t.Errorf("%s: %t", c.what, got)
		}
	}
}
