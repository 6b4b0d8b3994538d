package tasks

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// Guard runs f and turns a panic into an error, so that it ends one task and
// not the agent.
func Guard(log *slog.Logger, task string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("task panicked", "task", task, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic while %s: %v", task, v)
		}
	}()

	return f()
}

// Repeat runs f until ctx ends, again after a growing wait when it fails or
// panics, and at once when sooner, which may be nil, is notified.
func Repeat(ctx context.Context, log *slog.Logger, task string, sooner Signal, f func(context.Context) error) {
	var wait Backoff
	for ctx.Err() == nil {
		began := time.Now()
		err := Guard(log, task, func() error { return f(ctx) })
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > longestWait {
			wait.Reset()
		}
		log.ErrorContext(ctx, "task failed, will retry", "task", task, "error", err)
		if Pause(ctx, wait.Next(), sooner) {
			wait.Reset()
		}
	}
}
