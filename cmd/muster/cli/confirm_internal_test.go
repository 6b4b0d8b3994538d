package cli

import (
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/hosttest"
)

// TestConfirm prompts only on a terminal.
func TestConfirm(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{"y": "", "Yes ": "", "n": "not pushed", "": "not pushed", "yep": "not pushed"} {
		user, program := hosttest.Terminal(t)
		e := Prompt{newInput(program, nil), program}
		if _, err := user.WriteString(answer + "\n"); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := e.Confirm("not pushed", "nodes would stop enforcing a\x1b"); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q", answer, got)
		}
		seen := ""
		for b := make([]byte, 1000); !strings.Contains(seen, "[y/N]"); {
			n, err := user.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			seen += string(b[:n])
		}
		if !strings.Contains(seen, "nodes would stop enforcing a\\u001b. Continue? [y/N]") {
			t.Errorf("it asked %q", seen)
		}
	}
	_, program := hosttest.Terminal(t)
	const yes = "not pushed: nodes would stop; confirm with --yes"
	for name, e := range map[string]Prompt{
		"a file as input":  {strings.NewReader("y\n"), program},
		"errors in a file": {newInput(program, nil), &strings.Builder{}},
	} {
		if err := e.Confirm("not pushed", "nodes would stop"); err == nil || err.Error() != yes {
			t.Errorf("%s: %v", name, err)
		}
	}
}
