package requests

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/musterfleet/muster/testing/hosttest"
)

func TestTooManyRequestsAreForgotten(t *testing.T) {
	s, err := openStore(hosttest.New(t), t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for i := range maxKnown + 2 {
		s.known[fmt.Sprint(i)] = start.Add(time.Duration(i))
	}
	s.open["0"] = &request{}
	s.prune(start)
	if len(s.known) != maxKnown-maxKnown/10+1 {
		t.Errorf("%d are known", len(s.known))
	}
	for name, want := range map[string]bool{"0": true, "1": false, fmt.Sprint(maxKnown): true} {
		if _, known := s.known[name]; known != want {
			t.Errorf("request %s is known: %v", name, known)
		}
	}
}
