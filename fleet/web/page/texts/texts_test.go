package texts_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/musterfleet/muster/fleet/web/page/texts"
)

func TestTexts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for got, want := range map[string]string{
		texts.Number(0): "0", texts.Number(999): "999", texts.Number(1000): "1,000", texts.Number(-1234567): "-1,234,567",
		texts.Count(1, "node"): "1 node", texts.Count(2, "entry"): "2 entries", texts.Count(0, "node"): "0 nodes",
		texts.Age(now.Add(time.Hour), now): "<1m", texts.Age(now.Add(-59*time.Minute), now): "59m", texts.Age(now.Add(-3*time.Hour-4*time.Minute), now): "3h04m", texts.Age(now.Add(-50*time.Hour), now): "2d",
		texts.Ago(now, now): "just now", texts.Ago(now.Add(-time.Minute), now): "1m ago",
		texts.Row("a\nb"): "a …", texts.Row(" a \n "): "a", texts.Cut("ääää", 3): "ä… (6 bytes more)", texts.Digest("sha256-0123456789abcdef"): "0123456789ab", texts.Digest("x"): "x",
		texts.Bytes(9_999): "9,999 bytes", texts.Bytes(1_000_000): "1,000 kB",
		texts.Duration(0): "–", texts.Duration(90 * time.Second): "1m30s", texts.Duration(5 * time.Minute): "5m", texts.Duration(time.Hour): "1h", texts.Duration(70 * time.Minute): "1h10m", texts.Duration(time.Hour + time.Second): "1h0m1s",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"plain\n", "\u202ea\x00\x1b[31m\xff", "\u2028ä\r\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := texts.Visible(s)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\x1b\r\u202e\u2066") {
			t.Errorf("%q became %q", s, got)
		}
		if again := texts.Visible(got); again != got {
			t.Errorf("%q became %q, and then %q", s, got, again)
		}
	})
}
