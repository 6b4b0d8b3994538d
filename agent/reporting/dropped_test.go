package reporting_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/musterfleet/muster/model"
)

// TestWhatIsDroppedIsToldExactly: a long outage with restarts ends with two events: one that may have
// arrived, and one for all later drops. Their counts and numbers are exact.
func TestWhatIsDroppedIsToldExactly(t *testing.T) {
	dir := t.TempDir()
	const most = 128 << 10
	total := 0
	for round := range 6 {
		b := open(t, dir, most)
		for range 40 {
			add(t, b, 3, report("run", "stable", 300))
			add(t, b, 2, report("transaction", "changed", 500+100*round))
			total += 5
		}
		b.Next(50) // a try that comes to nothing
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	b := open(t, dir, most)
	got := drain(t, b)
	accounted(t, got, uint64(total))
	events := 0
	for _, r := range got {
		if r.Outcome == "dropped" {
			events++
		}
	}
	if events != 2 || b.Len() != 0 {
		t.Errorf("%d events report what was dropped, %d reports wait", events, b.Len())
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = open(t, dir, most)
	if got := drain(t, b); len(got) != 0 {
		t.Errorf("after a restart %v come again", seqs(got))
	}
}

// TestDroppedWhileItWasHandedOver: a delivered report is not reported as dropped; drops after the event was
// sent are reported by the next one.
func TestDroppedWhileItWasHandedOver(t *testing.T) {
	const most = 64 << 10
	b := open(t, t.TempDir(), most)
	add(t, b, 200, report("transaction", "changed", 500))
	if err := b.Sync(); err != nil {
		t.Fatal(err)
	}
	batch := b.Next(20)
	if batch[0].Outcome != "dropped" {
		t.Fatalf("%v are handed over, the event is missing", seqs(batch))
	}
	add(t, b, 200, report("transaction", "changed", 500))
	if err := b.Ack(batch[len(batch)-1].Seq); err != nil {
		t.Fatal(err)
	}
	accounted(t, append(batch, drain(t, b)...), 400)
}

// TestEventWhoseAcknowledgementIsLost: the event may have arrived, so it is repeated unchanged; a
// second event covers later drops.
func TestEventWhoseAcknowledgementIsLost(t *testing.T) {
	const most = 64 << 10
	for name, restarts := range map[string]bool{"running": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := open(t, dir, most)
			add(t, b, 200, report("transaction", "changed", 500))
			if err := b.Sync(); err != nil {
				t.Fatal(err)
			}
			event := b.Next(20)[0]
			for range 3 {
				if restarts {
					if err := b.Close(); err != nil {
						t.Fatal(err)
					}
					b = open(t, dir, most)
				}
				add(t, b, 100, report("transaction", "changed", 500))
				b.Next(20)
			}
			waiting, got := b.Len(), drain(t, b)
			if len(got) != waiting || got[0].ID != event.ID || string(got[0].Data) != string(event.Data) {
				t.Errorf("%d reports that begin with %s came, want %d and %s", len(got), got[0].ID, waiting, event.ID)
			}
			accounted(t, got, 500)
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if got := drain(t, open(t, dir, most)); len(got) != 0 {
				t.Errorf("after a restart %v come again", seqs(got))
			}
		})
	}
}

// TestKilledBeforeItWasDropped: a report that is still stored was not dropped.
func TestKilledBeforeItWasDropped(t *testing.T) {
	dir, before := t.TempDir(), t.TempDir()
	const most = 64 << 10
	b := open(t, dir, most)
	add(t, b, 50, report("transaction", "changed", 500))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(before, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	b = open(t, dir, most)
	var data []byte
	for len(data) == 0 {
		add(t, b, 1, report("transaction", "changed", 500))
		data, _ = os.ReadFile(filepath.Join(dir, "dropped.json"))
	}
	if err := os.WriteFile(filepath.Join(before, "dropped.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	accounted(t, drain(t, open(t, before, most)), 50)
}

func TestDrop(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, 0)
	add(t, b, 5, report("run", "changed", 20))
	if err := b.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := b.Ack(b.Next(1)[0].Seq); err != nil {
		t.Fatal(err)
	}
	if err := b.Drop(2); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = open(t, dir, 0)
	accounted(t, append([]model.Report{{Seq: 1}}, drain(t, b)...), 5)
}

func TestDamagedFileOfWhatWasDropped(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, 0)
	add(t, b, 3, report("run", "changed", 20))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "dropped.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	rising(t, seqs(drain(t, open(t, dir, 0))), 1, 3)
}
