package kvstore_test

import (
	"errors"
	"iter"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
)

// TestBoundsEndAScan that has more messages or bytes, and no other.
func TestBoundsEndAScan(t *testing.T) {
	t.Parallel()
	messages := func(n int) iter.Seq2[kvstore.Message, error] {
		return func(yield func(kvstore.Message, error) bool) {
			for range n {
				if !yield(kvstore.Message{Header: nats.Header{"Name": {"one", "two"}}, Data: make([]byte, 10)}, nil) {
					return
				}
			}
		}
	}
	for name, tt := range map[string]struct {
		kvstore.ScanLimit
		has, want int
		ends      bool
	}{
		"as many":            {kvstore.ScanLimit{Messages: 5, Bytes: 100}, 5, 5, true},
		"one message more":   {kvstore.ScanLimit{Messages: 5, Bytes: 1000}, 6, 5, false},
		"one byte more":      {kvstore.ScanLimit{Messages: 9, Bytes: 99}, 5, 4, false},
		"far more than that": {kvstore.ScanLimit{Messages: 5, Bytes: 100}, 1000, 5, false},
	} {
		got, failed := 0, error(nil)
		for _, err := range tt.Of(messages(tt.has)) {
			if failed != nil {
				t.Errorf("%s: it goes on behind its error", name)
			}
			if failed = err; err == nil {
				got++
			}
		}
		if got != tt.want || errors.Is(failed, kvstore.ErrWrongAnswer) == tt.ends {
			t.Errorf("%s: %d, %v", name, got, failed)
		}
	}
}
