package serve

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestOneReadsForAll checks that concurrent callers share one read, even if the first caller leaves.
func TestOneReadsForAll(t *testing.T) {
	t.Parallel()
	v := newTTLCache[int](time.Hour, 2)
	begun, released := make(chan struct{}), make(chan struct{})
	var reads atomic.Int32
	read := func(ctx context.Context) (int, error) {
		n := reads.Add(1)
		if n == 1 {
			close(begun)
			<-released
		}
		return int(n), ctx.Err()
	}
	first, leave := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	ask := func(ctx context.Context) {
		asking.Go(func() { _, _ = v.Get(ctx, "a", read) })
	}
	ask(first)
	<-begun
	leave()
	for range 20 {
		ask(t.Context())
	}
	if _, err := v.Get(first, "a", read); !errors.Is(err, context.Canceled) {
		t.Errorf("caller that left: %v", err)
	}
	close(released)
	asking.Wait()
	if got, err := v.Get(t.Context(), "a", read); got != 1 || err != nil || reads.Load() != 1 {
		t.Errorf("%d, %v, read %d times", got, err, reads.Load())
	}
}

// TestAFewAreKept checks that the cache drops the oldest value, errors and expired values.
func TestAFewAreKept(t *testing.T) {
	t.Parallel()
	v := newTTLCache[int](time.Hour, 2)
	reads := 0
	get := func(v *ttlCache[int], key string, err error) int {
		got, _ := v.Get(t.Context(), key, func(context.Context) (int, error) { reads++; return reads, err })
		return got
	}
	for i := range 3 {
		get(v, strconv.Itoa(i), nil)
	}
	if got := []int{get(v, "1", nil), get(v, "2", nil), get(v, "0", nil)}; got[0] != 2 || got[1] != 3 || got[2] != 4 {
		t.Errorf("%v", got)
	}
	get(v, "x", errors.New("no"))
	if got := get(v, "x", nil); got != 6 {
		t.Errorf("after an error: %d", got)
	}
	short := newTTLCache[int](0, 1)
	for first := get(short, "a", nil); get(short, "a", nil) == first; {
		if t.Context().Err() != nil {
			t.Fatal("the value never expired")
		}
	}
}

// TestAPanicIsNotKept checks that callers receive an error if the read panics, and that the next caller reads again.
func TestAPanicIsNotKept(t *testing.T) {
	t.Parallel()
	v := newTTLCache[int](time.Hour, 2)
	if _, err := v.Get(t.Context(), "a", func(context.Context) (int, error) { panic("no") }); !errors.Is(err, errNotRead) || !strings.Contains(err.Error(), "no") {
		t.Errorf("reader: %v", err)
	}
	if got, err := v.Get(t.Context(), "a", func(context.Context) (int, error) { return 7, nil }); got != 7 || err != nil {
		t.Errorf("afterwards: %d, %v", got, err)
	}
}
