package typetest

import (
	"log/slog"
	"testing"
	"time"

	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
)

// patience is how long a wake may take.
const patience = 20 * time.Second

// drift changes the resource by hand: its watcher wakes and finds a pending change.
func (s *subject) drift(t testing.TB) {
	t.Helper()
	if s.each.Drift == nil {
		return
	}
	if s.typ.Watches == nil {
		s.breach("the type watches nothing")
		return
	}
	w := watch.New(slog.New(slog.DiscardHandler))
	defer w.Close()
	woken := make(chan struct{}, 1)
	for _, p := range resource.PointsBeside(s.typ.Watches(s.provider, s.spec), s.dir) {
		_, err := w.Arm(p, func() {
			select {
			case woken <- struct{}{}:
			default:
			}
		})
		if err != nil {
			s.breach("%s cannot be watched: %v", p, err)
		}
	}
	s.each.Drift(t, s.dir)
	for deadline := time.After(patience); ; {
		select {
		case <-woken:
		case <-deadline:
			s.breach("nobody was woken by drift that is due")
			return
		}
		state, err := s.state(t, false)
		if err != nil {
			s.breach("the look after drift: %v", err)
			return
		}
		if plan, err := s.typ.Plan(s.spec, state, false); err != nil || !plan.Empty() {
			return
		}
	}
}
