package systemd

import "testing"

// TestMessage reads what journalctl of systemd 252 wrote.
func TestMessage(t *testing.T) {
	for line, want := range map[string]string{
		`{"MESSAGE":"the port is taken","__REALTIME_TIMESTAMP":"1763767309000000"}`: "the port is taken",
		`{"MESSAGE":"two\nlines"}`:          "two\nlines",
		`{"MESSAGE":[27,91,51,49,109,255]}`: "\x1b[31m\uFFFD",
		`{"MESSAGE":null}`:                  "",
		`{}`:                                "",
		`{"MESSAGE":"cut o`:                 "(a message that cannot be read)",
	} {
		if got := message(line); got != want {
			t.Errorf("%s gives %q, not %q", line, got, want)
		}
	}
}
