package print

import (
	"os"
	"strings"
	"testing"
)

func TestLines(t *testing.T) {
	if got := Lines("a: \x1b[2J\r\n\tb\x00"); got != "a: \\u001b[2J\n\tb\\u0000\n" {
		t.Errorf("got %q", got)
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"as it is ü\t1":  "as it is ü\t1",
		"\x1b[31mred":    `\u001b[31mred`,
		"\x1b]0;owned\a": `\u001b]0;owned\u0007`,
		"a\u202eb":       `a\u202eb`,
		"two\nlines":     `two\u000alines`,
	} {
		if got := Text(in); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestShort(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	long := strings.Repeat("é", 200)
	for in, want := range map[string]string{"a\n b\tc": "a b c", long[:240]: long[:240], long: long[:238] + "…"} {
		if got := (Printer{Out: terminal}).Short(in); got != want {
			t.Errorf("got %q", got)
		}
	}
	if got := (Printer{Out: &strings.Builder{}}).Short(long + "\n"); got != long {
		t.Errorf("cut where no terminal is: %q", got)
	}
}
