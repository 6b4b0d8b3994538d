package agent

import (
	"reflect"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// settings is the configuration in force, which a reload changes.
type settings struct {
	mu     sync.Mutex
	config Config
}

func (s *settings) get() Config {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.config
}

// apply takes over what of a configuration can be changed while the agent runs,
// and returns its keys, and those that need a restart, which stay as they are.
func (s *settings) apply(c Config) (applied, needRestart []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.config
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
	s.config = next

	return applied, needRestart
}

// families returns the families of the node, those that win first.
func (s *settings) families() []string {
	c := s.get()

	return model.Families(c.Node, c.Groups)
}

// heartbeat returns the wait until the next heartbeat.
func (s *settings) heartbeat() time.Duration {
	return tasks.Spread(s.get().Heartbeat.Std(), tasks.Jitter)
}
