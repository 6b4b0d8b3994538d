package command_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/musterfleet/muster/testing/hosttest"
)

// TestRunKillsWhatLeavesItsSession has children in new sessions. Their parents wait for them or are gone.
func TestRunKillsWhatLeavesItsSession(t *testing.T) {
	timedOut := errors.New("timed out after 30s")
	for name, script := range map[string]string{
		"a child":                `setsid sh -c 'echo $$; exec sleep 1000' & wait`,
		"a child of a child":     `setsid sh -c 'setsid sh -c "echo \$\$; exec sleep 1000" & wait' & wait`,
		"an orphan":              `(setsid sh -c 'echo $$; exec sleep 1000' &); sleep 1000`,
		"one without its output": `(setsid sh -c 'echo $$; exec sleep 1000 >/dev/null 2>&1 </dev/null' &); sleep 1000`,
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		c := shell(script)
		c.Env = append(c.Env, "MUSTER_RUN=3IhKtest")
		child, once := "", sync.Once{}
		c.OnLine = func(line string, _ bool) {
			once.Do(func() { child = strings.TrimSpace(line) })
			cancel(timedOut)
		}
		if _, err := hosttest.New(t).Run(ctx, c); !errors.Is(err, timedOut) {
			t.Errorf("%s: the error is %v", name, err)
		}
		gone(t, child)
	}
}
