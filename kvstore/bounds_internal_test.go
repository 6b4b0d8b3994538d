package kvstore

import (
	"errors"
	"testing"
)

// TestListsEndByTheirBytes: a list of pages that are short enough has 64 MiB at most.
func TestListsEndByTheirBytes(t *testing.T) {
	t.Parallel()
	page := make([]byte, 8<<20)
	var size listed
	for n := range 8 {
		if err := size.add(page, len(page)); err != nil {
			t.Fatalf("page %d: %v", n, err)
		}
	}
	if err := size.add(page[:1], len(page)); !errors.Is(err, ErrWrongAnswer) {
		t.Errorf("64 MiB and more: %v", err)
	}
}
