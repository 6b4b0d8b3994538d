package reporting_test

import "testing"

// TestStats: each dropped report is counted once, as the
// event about them has it.
func TestStats(t *testing.T) {
	const most = 128 << 10
	dir := t.TempDir()
	b := open(t, dir, most)
	add(t, b, 10, report("transaction", "changed", 500))
	// The file of the cursor is no report.
	if got := b.Stats(); got.Reports != 10 || got.Dropped != 0 || got.MaxBytes != most || got.Bytes < 10*500 || got.Bytes > diskSize(t, dir) {
		t.Errorf("figures %+v", got)
	}
	add(t, b, 390, report("transaction", "changed", 500))
	got, waiting := b.Stats(), 0
	for _, r := range drain(t, b) {
		if r.Outcome != "dropped" {
			waiting++
		}
	}
	if waiting == 0 || got.Reports != waiting+1 || got.Dropped != uint64(400-waiting) || got.Bytes > most {
		t.Errorf("figures %+v, and %d of 400 were left", got, waiting)
	}
	if got := b.Stats(); got.Reports != 0 || got.Dropped != uint64(400-waiting) {
		t.Errorf("figures %+v when all is published", got)
	}
}
