package reporting

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterfleet/muster/model"
)

// FuzzSegment reads any bytes as a segment: whatever is taken is what a writer
// would have written, and the outbox works on behind it.
func FuzzSegment(f *testing.F) {
	var whole []byte
	for i, outcome := range []model.Outcome{"stable", "failed", "dropped"} {
		r, err := encode(&model.Report{Seq: uint64(i + 1), Kind: model.KindRun, Outcome: outcome, Data: json.RawMessage(`{"a":1}`)})
		if err != nil {
			f.Fatal(err)
		}
		whole = append(whole, r.line()...)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add(append(bytes.Clone(whole), 0xff, 0xff, '\n', 0xff, 0))
	f.Add(append([]byte("\n"), whole...))
	f.Add([]byte("not a segment"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		var again []byte
		whole, damaged := parse(data, func(r record, offset int64) {
			line := r.line()
			if !bytes.HasPrefix(data[offset:], line) {
				t.Fatal("what was read is not what stands there")
			}
			again = append(again, line...)
		})
		if damaged == bytes.Equal(again, data[:whole]) {
			t.Fatalf("%d of %d bytes are valid, damaged is %v", len(again), whole, damaged)
		}

		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "00000000000000000001.log"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := OpenOutbox(OutboxOptions{Dir: dir, Log: slog.New(slog.DiscardHandler), Dropped: func(Lost) model.Report { return model.Report{Kind: model.KindNode, Data: json.RawMessage("{}")} }})
		if err != nil {
			t.Fatal(err)
		}
		last, err := b.Append(model.Report{Kind: model.KindRun, Data: json.RawMessage("{}")})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Sync(); err != nil {
			t.Fatal(err)
		}
		seen := uint64(0)
		for batch := b.Next(3); len(batch) > 0; batch = b.Next(3) {
			seen = batch[len(batch)-1].Seq
			if err := b.Ack(seen); err != nil {
				t.Fatal(err)
			}
		}
		if seen < last {
			t.Fatalf("handed over to %d, report %d was lost", seen, last)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
