package demo

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestWithinNamesItsCauseOnce: the error of a step that was interrupted has the cause once.
func TestWithinNamesItsCauseOnce(t *testing.T) {
	t.Parallel()
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(interrupted)
	for want, err := range map[string]error{
		"interrupted":            interrupted,
		"wait: interrupted":      fmt.Errorf("wait: %w", interrupted),
		"interrupted: no answer": errors.New("no answer"),
	} {
		s := step{show: func(context.Context) ([]string, error) { return nil, err }}
		if _, got := s.within(ctx); got == nil || got.Error() != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
}
