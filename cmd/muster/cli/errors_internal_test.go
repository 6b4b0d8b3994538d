package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// TestErrorsOfLibraries checks that errors of libraries are rewritten for users.
func TestErrorsOfLibraries(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"muster: list streams: nothing answers there (is JetStream enabled in nats-server, and for this account?)\n": fmt.Errorf("list streams: %w", nats.ErrNoResponders),
		"muster: read x: no answer in time\n":     fmt.Errorf("read x: %w", context.DeadlineExceeded),
		"muster: read y: no answer in time\n":     fmt.Errorf("read y: %w", nats.ErrTimeout),
		"muster: a.tgz: it ends too early\n":      fmt.Errorf("a.tgz: %w", io.ErrUnexpectedEOF),
		"muster: the text is \"nats: timeout\"\n": fmt.Errorf("the text is %q", nats.ErrTimeout.Error()),
		"muster: wrong: --x\n":                    Usagef("wrong: --x"),
	} {
		var out bytes.Buffer
		Report(&out, (&Env{}).ConnectHint(err))
		if got := out.String(); got != want || strings.Count(got, "\n") != 1 {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
