package kvstore

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/testing/natstest"
)

// For any stored headers, the client either reads the server's headers or rejects the
// message.
func TestHeadersThatCannotBeRead(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc := srv.Connect(t)
	const added = "Nats-Stream: S\r\nNats-Subject: a.b\r\nNats-Sequence: 7\r\nNats-Time-Stamp: 2026-01-02T03:04:05Z\r\n\r\n"
	const own = "Nats-Stream: S\r\nNats-Subject: a.c\r\nNats-Sequence: 7\r\nNats-Time-Stamp: 2026-01-02T03:04:05Z\r\n"
	short := ""
	for range 150 {
		short += "a:b\n"
	}
	for name, tt := range map[string]struct {
		block string
		want  error
	}{
		"readable":                  {"NATS/1.0\r\nMine: 1\r\n" + added, nil},
		"written without a space":   {"NATS/1.0\r\nMine:1\r\nYours:2\r\n" + added, nil},
		"no colon":                  {"NATS/1.0\r\nfoo\r\n" + added, ErrUnreadable},
		"no name":                   {"NATS/1.0\r\n: x\r\n" + added, ErrUnreadable},
		"a name with a space":       {"NATS/1.0\r\n a: b\r\n" + added, nil},
		"an empty line":             {"NATS/1.0\r\n" + own + "\r\nx\r\n" + added, ErrUnreadable},
		"an end of its own":         {"NATS/1.0 204 EOB\r\nNats-Num-Pending: 0\r\n\r\n" + added, ErrUnreadable},
		"nothing found of its own":  {"NATS/1.0 404 Message Not Found\r\n\r\n" + added, ErrUnreadable},
		"many short lines":          {"NATS/1.0\n" + own + short + "\n" + added, ErrUnreadable},
		"no end, which joins lines": {"NATS/1.0\r\nStatus: 404\r\nX: " + added, ErrUnreadable},
		"end of the batch":          {"NATS/1.0 204 EOB\r\nNats-Num-Pending: 0\r\nNats-Last-Sequence: 7\r\n\r\n", errEndOfBatch},
	} {
		got := natstest.PublishRaw(t, srv, nc, "a.inbox", tt.block, "")
		m, err := decodeAnswer(Query{"S", ">", 0}, got)
		if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) || err == nil && m.Subject != "a.b" {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	if hasAllHeaders(&nats.Msg{}) != true {
		t.Error("no headers are not whole")
	}
}
