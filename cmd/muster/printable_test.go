package main

import "testing"

func TestForTerminal(t *testing.T) {
	if got := forTerminal("a: \x1b[2J\r\n\tb\x00"); got != "a: \\u001b[2J\n\tb\\u0000\n" {
		t.Errorf("got %q", got)
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"as it is ü\t1":  "as it is ü\t1",
		"\x1b[31mred":    `\u001b[31mred`,
		"\x1b]0;owned\a": `\u001b]0;owned\u0007`,
		"a\u202eb":       `a\u202eb`,
		"two\nlines":     `two\u000alines`,
	} {
		if got := printable(in); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
