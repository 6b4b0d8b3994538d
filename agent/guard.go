package agent

import (
	"fmt"
	"runtime/debug"
)

// guard turns a panic into an error, so that it ends what was being done and
// not the agent.
func (a *Agent) guard(what string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			a.log.Error("a part of the agent panicked", "part", what, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic while %s: %v", what, v)
		}
	}()

	return f()
}
