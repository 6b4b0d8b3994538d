package page

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestTexts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for got, want := range map[string]string{
		Number(0): "0", Number(999): "999", Number(1000): "1,000", Number(-1234567): "-1,234,567",
		Count(1, "node"): "1 node", Count(2, "entry"): "2 entries", Count(0, "node"): "0 nodes",
		Age(now.Add(time.Hour), now): "<1m", Age(now.Add(-59*time.Minute), now): "59m", Age(now.Add(-3*time.Hour-4*time.Minute), now): "3h04m", Age(now.Add(-50*time.Hour), now): "2d",
		Ago(now, now): "just now", Ago(now.Add(-time.Minute), now): "1m ago",
		Row("a\nb"): "a …", Row(" a \n "): "a", Cut("ääää", 3): "ä… (6 bytes more)", Digest("sha256-0123456789abcdef"): "0123456789ab", Digest("x"): "x",
		Bytes(9_999): "9,999 bytes", Bytes(1_000_000): "1,000 kB",
		Duration(0): "–", Duration(90 * time.Second): "1m30s", Duration(5 * time.Minute): "5m", Duration(time.Hour): "1h", Duration(70 * time.Minute): "1h10m", Duration(time.Hour + time.Second): "1h0m1s",
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
		got := Visible(s)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\x1b\r\u202e\u2066") {
			t.Errorf("%q became %q", s, got)
		}
		if again := Visible(got); again != got {
			t.Errorf("%q became %q, and then %q", s, got, again)
		}
	})
}
