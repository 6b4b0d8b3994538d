package view

import (
	"math"
	"testing"
	"time"
)

// TestSame: equal values share memory, and the table of values is limited.
func TestSame(t *testing.T) {
	t.Parallel()
	type pair struct {
		text   string
		number int
	}
	s := interned[pair]{}
	first := s.Share(pair{"a", 0})
	if s.Share(pair{"a", 0}) != first || s.Share(pair{"a", 1}) == first || s.Share(pair{"b", 0}) == first {
		t.Error("equal values are not one, or others are")
	}
	for i := range 100_000 {
		if got := s.Share(pair{"many", i}); *got != (pair{"many", i}) {
			t.Fatalf("%d: %+v", i, *got)
		}
	}
	if got := len(s); got == 0 || got > 5000 {
		t.Errorf("%d are kept", got)
	}
	if *first != (pair{"a", 0}) || *s.Share(pair{"a", 0}) != *first {
		t.Error("what was shared before changed")
	}
}

// TestTexts: texts are limited too, and long ones are not shared.
func TestTexts(t *testing.T) {
	t.Parallel()
	texts := internedTexts{}
	for i := range 60_000 {
		texts.Share(string(rune(i+0x10000)) + "x")
	}
	if len(texts) > 50_000 {
		t.Errorf("%d are kept", len(texts))
	}
	long := string(make([]byte, 300))
	if before := len(texts); texts.Share(long) != long || len(texts) != before {
		t.Error("a long text is kept")
	}
}

// TestInstants: a time is the same again, or where it is too far off still before or after all others.
func TestInstants(t *testing.T) {
	t.Parallel()
	for _, want := range []time.Time{
		{}, time.Unix(0, 0), time.Unix(0, 1), time.Unix(0, -1), time.Date(2026, 11, 26, 12, 0, 0, 123456789, time.FixedZone("", 3600)),
		time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		if got := instantOf(want).Time(); !got.Equal(want) || got.IsZero() != want.IsZero() {
			t.Errorf("%s, want %s", got, want)
		}
	}
	least, most := time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, far := range []time.Time{time.Date(-9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(math.MinInt64/2, 0)} {
		if got := instantOf(far).Time(); got.IsZero() || !got.Before(least) {
			t.Errorf("%s: %s", far, got)
		}
	}
	for _, far := range []time.Time{time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(math.MaxInt64/2, 0)} {
		if got := instantOf(far).Time(); !got.After(most) {
			t.Errorf("%s: %s", far, got)
		}
	}
}

// TestCuts: at the boundary of a character, the first line alone.
func TestCuts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "abcd": "abcd", "abcde": "abcd…", "abcé": "abc…", " ab\ncd": "ab"} {
		if got := firstLine(text, 4); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
