package view

import "testing"

// TestCuts: at the boundary of a character, the first line alone.
func TestCuts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "abcd": "abcd", "abcde": "abcd…", "abcé": "abc…", " ab\ncd": "ab"} {
		if got := firstLine(text, 4); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
