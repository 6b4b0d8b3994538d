package watch_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// A server with a wrong clock, or a lying one, dated the known values in the future. Values of another server
// are still newer.
func TestATimeInTheFutureHoldsUpNothing(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	const key = "node.web01.motd"
	if _, err := store.Put(t.Context(), key, []byte("new")); err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]time.Time{"a year": time.Now().AddDate(1, 0, 0), "the last year": time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := watch.Options{Node: "web01", Audit: 10 * time.Millisecond, GroupJitter: time.Millisecond}
			known := model.Entry{Key: key, Revision: math.MaxUint64, Time: at}
			w := kvtest.WatchSince(t, kvtest.Bind(t, srv), o, model.Memory{Entries: map[string]model.Entry{key: known}, Stream: at})
			kvtest.Eventually(t, "what the bucket has is in force", func() (bool, string) {
				entries, state := w.Entries()
				return entries[key].Revision == 1 && len(state.Kept) == 0, fmt.Sprintf("%+v, kept %v", entries[key], state.Kept)
			})
		})
	}
}
