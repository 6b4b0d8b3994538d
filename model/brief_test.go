package model_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
)

func TestWords(t *testing.T) {
	t.Parallel()
	x := func(n int) string { return strings.Repeat("ä", n) }
	for in, want := range map[string]string{
		"":                                 "",
		"short":                            "short",
		strings.Repeat("many words ", 100): strings.Repeat("many words ", 100),
		x(200) + "\n" + x(200):             x(200) + "\n" + x(200),
		"user \"" + x(3000) + "\": no such account": "user \"" + x(199) + "… (2803 more characters) no such account",
		x(201) + "\u00a0" + x(202):                  x(200) + "… (1 more character)\u00a0" + x(200) + "… (2 more characters)",
		x(200) + "\xff\xff":                         x(200) + "… (2 more characters)",
	} {
		if got := model.ShortenWords(in); got != want {
			t.Errorf("%.40q: %q", in, got)
		}
	}
}

func FuzzWords(f *testing.F) {
	f.Add("a b", 300)
	f.Add("ä\xff", 201)
	f.Fuzz(func(t *testing.T, text string, n int) {
		if n < 0 || n > 1000 || len(text) > 1000 {
			return
		}
		in := strings.Repeat(text, n)
		out := model.ShortenWords(in)
		if utf8.ValidString(in) && !utf8.ValidString(out) {
			t.Errorf("%q is no text", out)
		}
		for _, word := range strings.Fields(out) {
			if n := utf8.RuneCountInString(word); n > model.MaxWordLength+1 {
				t.Errorf("a word has %d characters", n)
			}
		}
	})
}
