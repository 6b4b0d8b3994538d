package connect_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/testing/natstest"
)

// TestALineTooLongForTheServer: as one with a long JWT is, by default.
func TestALineTooLongForTheServer(t *testing.T) {
	t.Parallel()
	for config, long := range map[string]bool{"": true, "max_control_line: 64KB\n": false} {
		srv := natstest.Start(t, natstest.WithConfig(config))
		nc, err := connect.Dial(t.Context(), connect.Options{Servers: []string{srv.URL()}, User: "a", Password: strings.Repeat("x", 5000)})
		if err == nil {
			nc.Close()
		}
		if is := errors.Is(err, connect.ErrControlLine) && errors.Is(err, connect.ErrEnded) && errors.Is(err, connect.ErrConnect); is != long || !long && err != nil {
			t.Errorf("with %q: %v", config, err)
		}
	}
}
