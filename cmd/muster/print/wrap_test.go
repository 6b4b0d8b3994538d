package print_test

import (
	"bufio"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestTableOfATerminal: the last column wraps between words at the width of the terminal, below itself; a
// terminal without room for it gets whole lines.
func TestTableOfATerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	user, program := hosttest.Terminal(t)
	lines := bufio.NewScanner(user)
	reason := strings.Repeat("one two three ", 12) + strings.Repeat("x", 70) + " write it anew"
	for columns, want := range map[uint16][]string{
		40: {
			"NODE   REASON", "web01  one two three one two three one", "       two three one two three one two", "       three one two three one two three",
			"       one two three one two three one", "       two three one two three one two", "       three", "       " + strings.Repeat("x", 33), "       " + strings.Repeat("x", 33),
			"       xxxx write it anew", "db     ok",
		},
		20: {"NODE   REASON", "web01  " + reason, "db     ok"},
		0:  {"NODE   REASON", "web01  " + reason, "db     ok"},
	} {
		if err := unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: 20}); err != nil {
			t.Fatal(err)
		}
		print.Printer{Out: program, Err: program}.Table([]string{"NODE", "REASON"}, [][]string{{"web01", reason}, {"db", "ok"}}, "")
		for i, line := range want {
			if !lines.Scan() {
				t.Fatal(lines.Err())
			}
			if got := strings.TrimRight(lines.Text(), "\r"); got != line {
				t.Errorf("%d columns, line %d is\n%q, not\n%q", columns, i, got, line)
			}
		}
	}
}

// TestLongTableOfATerminal: a table of many rows has one line for each, or two where little room is left.
func TestLongTableOfATerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	user, program := hosttest.Terminal(t)
	lines := bufio.NewScanner(user)
	reason := strings.Repeat("one two three ", 12)
	for columns, want := range map[uint16]string{
		40: "web01  one two three one two three one …",
		20: "web01  one two three one two three one …",
		0:  "web01  " + strings.TrimSpace(reason),
	} {
		if err := unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: 20}); err != nil {
			t.Fatal(err)
		}
		var rows [][]string
		for range 12 {
			rows = append(rows, []string{"web01", strings.TrimSpace(reason)})
		}
		print.Printer{Out: program, Err: program}.Table([]string{"NODE", "REASON"}, rows, "")
		for i := range 13 {
			if !lines.Scan() {
				t.Fatal(lines.Err())
			}
			if got := strings.TrimRight(lines.Text(), "\r"); i > 0 && got != want {
				t.Errorf("%d columns, line %d is\n%q, not\n%q", columns, i, got, want)
			}
		}
	}
}
