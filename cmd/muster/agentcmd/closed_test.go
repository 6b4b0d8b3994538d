package agentcmd_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/cmd/muster/agentcmd"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// serveTLS welcomes one client, and sends it a line within TLS.
func serveTLS(l net.Listener, certificate tls.Certificate, line string) {
	plain, err := l.Accept()
	if err != nil {
		return
	}
	defer plain.Close()
	_ = plain.SetDeadline(time.Now().Add(kvtest.Deadline))
	if _, err := plain.Write([]byte(`INFO {"server_id":"x","version":"2.11.0","max_payload":1048576,"headers":true,"tls_required":true} ` + "\r\n")); err != nil {
		return
	}
	conn := tls.Server(plain, &tls.Config{Certificates: []tls.Certificate{certificate}})
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if lines.Text() == "PING" {
			_, _ = conn.Write([]byte("PONG\r\n" + line))
			line = ""
		}
	}
}

// TestAConnectionClosedForGoodEndsTheAgent: within TLS the protocol cannot be checked, and
// nats.go gives up the connection at an error that it does not know.
func TestAConnectionClosedForGoodEndsTheAgent(t *testing.T) {
	t.Parallel()
	authority := natstest.NewAuthority(t)
	certificate, err := tls.LoadX509KeyPair(authority.Issue(t, "nats"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go serveTLS(l, certificate, "-ERR 'Maximum Payload Violation'\r\n")
	dir := t.TempDir()
	c := config.Default("web01")
	c.StateDir, c.FactsDir = filepath.Join(dir, "state"), filepath.Join(dir, "facts")
	c.NATS.Servers, c.NATS.TLSCA = []string{"tls://" + l.Addr().String()}, authority.CA
	var log hosttest.LogText
	n, err := agentcmd.NewNode(t.Context(), c, agentcmd.NodeOptions{Types: resources.All(), Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	ctx, stop := context.WithTimeout(t.Context(), kvtest.Deadline)
	defer stop()
	err = n.Run(ctx, ctx)
	text := log.String()
	if err == nil || ctx.Err() != nil {
		t.Errorf("the agent ended with %v, logged\n%s", err, text)
	}
	if strings.Count(text, "closed for good") != 1 || strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, "Maximum Payload Violation") || !strings.Contains(text, "agent stopped") {
		t.Errorf("logged\n%s", text)
	}
}
