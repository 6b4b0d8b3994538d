package agent

import (
	"slices"
	"sync"

	"github.com/musterfleet/muster/model"
)

// settings contains the active configuration, which a reload changes.
type settings struct {
	mu     sync.Mutex
	config Config
	// groups are the operators' groups and their order.
	groups model.Groups
	// using is held while use is called.
	using sync.Mutex
}

// get returns the configuration with all groups of the node, highest precedence first.
func (s *settings) get() Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.config
	c.Groups = s.groups.Join(c.Groups, c.GroupsOrder)

	return c
}

// useGroups calls use with all groups of the node. Calls do not overlap, so the last call has the current
// groups.
func (s *settings) useGroups(use func(groups []string)) {
	s.using.Lock()
	defer s.using.Unlock()
	use(s.get().Groups)
}

// setGroups sets the operators' groups, and reports whether they changed.
func (s *settings) setGroups(groups model.Groups) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = !slices.Equal(s.groups.Groups, groups.Groups) || !slices.Equal(s.groups.Order, groups.Order)
	s.groups = groups

	return changed
}

// apply applies a new configuration like Config.Apply.
func (s *settings) apply(c Config) (applied, needRestart []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config, applied, needRestart = s.config.Apply(c)

	return applied, needRestart
}
