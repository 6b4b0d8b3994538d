package reporting

import (
	"slices"
	"testing"

	"github.com/musterfleet/muster/model"
)

func TestLost(t *testing.T) {
	var l Lost
	for _, seq := range []uint64{5, 9, 7, 1, 6, 8} {
		l.add(seq, seq)
	}
	if want := []model.SeqRange{{From: 1, To: 1}, {From: 5, To: 9}}; !slices.Equal(l.Ranges, want) || l.Reports != 6 {
		t.Fatalf("got %v", l)
	}
	for seq, want := range map[uint64]bool{0: false, 1: true, 2: false, 4: false, 5: true, 9: true, 10: false} {
		if l.has(seq) != want {
			t.Errorf("has(%d) is %v", seq, !want)
		}
	}
	l.remove(7)
	if want := []model.SeqRange{{From: 1, To: 1}, {From: 5, To: 6}, {From: 8, To: 9}}; !slices.Equal(l.Ranges, want) || l.Reports != 5 {
		t.Fatalf("got %v", l)
	}
}

func TestLostIsBounded(t *testing.T) {
	var l Lost
	for i := range uint64(5000) {
		l.add(1+3*i, 1+3*i)
	}
	l.add(100_000, 100_000)
	l.bound()
	if len(l.Ranges) > maxRanges || l.Reports != 5001 || l.has(50_000) || !l.has(100_000) {
		t.Errorf("%d ranges of %d reports", len(l.Ranges), l.Reports)
	}
	for i := range uint64(5000) {
		if !l.has(1 + 3*i) {
			t.Fatalf("%d is missing", 1+3*i)
		}
	}
}
