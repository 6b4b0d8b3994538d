package agent

import (
	"context"
	"reflect"
	"slices"
	"strings"
)

// Reload takes over what of a new configuration can be changed while the agent
// runs, and gives its keys, and those that need a restart, which stay as they
// are. Keys below log are among the first, but are the caller's to apply. A
// configuration that is not valid is an error, and changes nothing.
func (a *Agent) Reload(ctx context.Context, c Config) (applied, needRestart []string, err error) {
	if err := c.Validate().Err(); err != nil {
		return nil, nil, err
	}
	a.mu.Lock()
	next := a.config
	now, then := next.fields(), c.fields()
	for i, f := range now {
		if f.section || reflect.DeepEqual(f.value.Interface(), then[i].value.Interface()) {
			continue
		}
		if f.restart {
			needRestart = append(needRestart, f.key)
			continue
		}
		f.value.Set(then[i].value)
		applied = append(applied, f.key)
	}
	a.config = next
	a.mu.Unlock()
	a.log.InfoContext(ctx, "configuration read again", "applied", strings.Join(applied, ","), "need_restart", strings.Join(needRestart, ","))
	if slices.Contains(applied, "groups") {
		a.opts.Assignments.Regroup(slices.Clone(c.Groups))
	}
	a.outbox.SetMaxBytes(int64(c.OutboxMaxBytes))
	a.queue.assignmentsChanged()
	a.said.Notify()

	return applied, needRestart, nil
}
