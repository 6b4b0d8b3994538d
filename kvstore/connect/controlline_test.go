package connect_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/loopback"
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

// TestALineTooLongWhereTheProtocolIsNotSeen: within TLS and web sockets the client reads the
// error itself, when it connects and when it tries so in the background.
func TestALineTooLongWhereTheProtocolIsNotSeen(t *testing.T) {
	t.Parallel()
	authority := natstest.NewAuthority(t)
	cert, key := authority.Issue(t, "nats")
	byTLS := natstest.Start(t, natstest.WithConfig(fmt.Sprintf("tls: {cert_file: %q, key_file: %q}", cert, key)))
	address := loopback.Address(t).String()
	natstest.Start(t, natstest.WithConfig(fmt.Sprintf("websocket: {listen: %q, no_tls: true}", address)))
	for _, url := range []string{byTLS.URL(), "ws://" + address} {
		o := connect.Options{Servers: []string{url}, User: "a", Password: strings.Repeat("x", 5000)}
		if strings.HasPrefix(url, "nats://") {
			o.TLSCA = authority.CA
		}
		err := unlessReset(t, func() error {
			nc, err := connect.Dial(t.Context(), o)
			if err == nil {
				nc.Close()
			}
			return err
		})
		if !errors.Is(err, connect.ErrControlLine) || !errors.Is(err, connect.ErrEnded) {
			t.Errorf("%s: %v", url, err)
		}
		// In the background the client reports only the first attempt that reaches the server.
		err = unlessReset(t, func() error {
			failures := make(chan error, 100)
			o := o
			o.RetryOnFailedConnect, o.OnStatus = true, func(s connect.Status) { failures <- s.Err }
			nc, err := connect.Dial(t.Context(), o)
			if err != nil {
				return err
			}
			defer nc.Close()
			return kvtest.Receive(t, failures)
		})
		if !errors.Is(err, connect.ErrControlLine) {
			t.Errorf("%s: in the background: %v", url, err)
		}
	}
}

// unlessReset connects until the error is another than a reset: the server may close the
// connection while the client still writes.
func unlessReset(t *testing.T, connect func() error) (err error) {
	t.Helper()
	kvtest.Eventually(t, "the connection is not reset", func() (bool, string) {
		err = connect()

		return !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE), fmt.Sprint(err)
	})

	return err
}
