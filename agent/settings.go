package agent

import "sync"

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

// apply is Config.Apply.
func (s *settings) apply(c Config) (applied, needRestart []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config, applied, needRestart = s.config.Apply(c)

	return applied, needRestart
}
