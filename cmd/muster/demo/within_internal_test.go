package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// TestLiveReportsOmitStableRuns checks that failures are shown, and runs without changes are not.
func TestLiveReportsOmitStableRuns(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	live := &indented{w: &out, omit: stableRun}
	for _, line := range []string{"run          stable     node.demo.site", "transaction  failed     file#motd", "run          rejected   node.demo.site"} {
		if _, err := live.Write([]byte("2026-01-02 03:04:05 CET  demo  " + line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); strings.Contains(got, " stable ") || strings.Count(got, "\n") != 2 {
		t.Error(got)
	}
}
