package drift

import (
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
)

// TestEventsWhileTheyAreTaken come from another goroutine than the one that takes them.
func TestEventsWhileTheyAreTaken(t *testing.T) {
	woken := make(chan struct{}, 1)
	m := New(Options{Wake: func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 1000 {
			m.note(id{"key", model.Ref{Type: "file", Name: string(rune('a' + i%26))}})
		}
	}()
	for {
		if drifted := m.Take(time.Now()); len(drifted) != 0 {
			t.Errorf("%v of a manifest that nobody follows", drifted)
		}
		select {
		case <-done:
			<-woken
			return
		default:
		}
	}
}
