package agent

import (
	"slices"
	"sync"

	"github.com/musterfleet/muster/model"
)

// settings is the configuration in force, which a reload changes.
type settings struct {
	mu     sync.Mutex
	config Config
	// groups are the groups of operators, and their order.
	groups model.Groups
	// using is held while the groups are handed on.
	using sync.Mutex
}

// get returns the configuration with all groups of the node, the winning group first.
func (s *settings) get() Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.config
	c.Groups = s.groups.Join(c.Groups, c.GroupsOrder)

	return c
}

// useGroups calls use with all groups that the node is in, one call after the other, so that the last
// one has those in force.
func (s *settings) useGroups(use func(groups []string)) {
	s.using.Lock()
	defer s.using.Unlock()
	use(s.get().Groups)
}

// setGroups replaces the groups of operators, and reports whether they changed.
func (s *settings) setGroups(groups model.Groups) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = !slices.Equal(s.groups.Groups, groups.Groups) || !slices.Equal(s.groups.Order, groups.Order)
	s.groups = groups

	return changed
}

// apply is Config.Apply.
func (s *settings) apply(c Config) (applied, needRestart []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config, applied, needRestart = s.config.Apply(c)

	return applied, needRestart
}
