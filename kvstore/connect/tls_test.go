package connect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/testing/loopback"
	"github.com/musterfleet/muster/testing/natstest"
)

// The client rejects another certificate, and never talks without TLS to a server that requires it.
func TestDialByTLS(t *testing.T) {
	t.Parallel()
	authority, other := natstest.NewAuthority(t), natstest.NewAuthority(t).CA
	cert, key := authority.Issue(t, "nats")
	srv := natstest.Start(t, natstest.WithConfig(fmt.Sprintf("tls: {cert_file: %q, key_file: %q}", cert, key)))
	nc, err := connect.Dial(t.Context(), connect.Options{Servers: []string{srv.URL()}, TLSCA: authority.CA})
	if err != nil {
		t.Fatal(err)
	}
	if state, err := nc.TLSConnectionState(); err != nil || !state.HandshakeComplete {
		t.Errorf("TLS = %+v, %v", state, err)
	}
	nc.Close()
	for name, ca := range map[string]string{"another authority": other, "none": ""} {
		if _, err := connect.Dial(t.Context(), connect.Options{Servers: []string{srv.URL()}, TLSCA: ca}); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v", name, err)
		}
	}
	plain := natstest.Start(t)
	for _, url := range []string{plain.URL(), strings.Replace(plain.URL(), "nats://", "tls://", 1)} {
		if _, err := connect.Dial(t.Context(), connect.Options{Servers: []string{url}, TLSCA: authority.CA}); err == nil {
			t.Errorf("%s: connected without TLS", url)
		}
	}
}

// Within a web socket the protocol cannot be followed, and is not.
func TestDialByWebSocket(t *testing.T) {
	t.Parallel()
	address := loopback.Address(t).String()
	natstest.Start(t, natstest.WithConfig(fmt.Sprintf("websocket: {listen: %q, no_tls: true}", address)))
	nc, err := connect.Dial(t.Context(), connect.Options{Servers: []string{"ws://" + address}})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.Flush(); err != nil {
		t.Error(err)
	}
}
