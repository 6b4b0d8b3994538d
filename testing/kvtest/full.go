package kvtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/testing/natstest"
)

// fillSize is the size of a message that fills a server or a stream.
const fillSize = 512 << 10

// FillServer stores messages until the server refuses them because of its max_file_store, and returns a function that
// frees the room.
func FillServer(t testing.TB, s *Store) (free func()) {
	t.Helper()
	const name = "FILL"
	if _, err := s.JetStream().CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{"fill"}}); err != nil {
		t.Fatal(err)
	}
	for {
		_, err := s.JetStream().Publish(t.Context(), "fill", make([]byte, fillSize))
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) {
			t.Fatal(err)
		}
		if err != nil {
			break
		}
	}

	return func() {
		if err := s.JetStream().DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
}

// FailWrites makes each write of a stream in the account $G fail, as on a full disk, and returns a function that mends
// its directory. The server answers reads.
func FailWrites(t testing.TB, srv *natstest.Server, s *Store, stream string) (mend func()) {
	t.Helper()
	dir := filepath.Join(srv.Store(), "jetstream", "$G", "streams", stream, "msgs")
	away := dir + ".away"
	if err := os.Rename(dir, away); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	subject := "muster.report.fill.run.stable"
	if stream == "KV_MUSTER_NODES" {
		subject = "$KV.MUSTER_NODES.fill.facts"
	}
	for failed := false; !failed; { // writes fail in the next file
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		_, err := s.Conn.RequestWithContext(ctx, subject, make([]byte, 60<<10))
		failed = err != nil
		cancel()
	}

	return func() {
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(away, dir); err != nil {
			t.Fatal(err)
		}
	}
}
