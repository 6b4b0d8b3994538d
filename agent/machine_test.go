package agent_test

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/musterfleet/muster/agent/drift"
	"github.com/musterfleet/muster/resources/host/watch"
)

// machine provides the watches of a node; the test makes the events. In a bubble no time passes while a real
// watch waits for the kernel.
type machine struct {
	mu sync.Mutex
	// armed are the wakes by the name of the point, ever counts how often one was armed.
	armed map[string][]*armed
	ever  int
	// refused are names that cannot be watched.
	refused map[string]error
	// writers are the writing processes by path.
	writers map[string]string
	// listening are the paths with a listener.
	listening []string
}

// watching enables watches on the node.
func (n *node) watching() *machine {
	n.machine = &machine{armed: map[string][]*armed{}, refused: map[string]error{}, writers: map[string]string{}}

	return n.machine
}

type armed struct {
	m    *machine
	name string
	wake func()
	err  error
	// written reports a write to the file.
	written bool
}

func (m *machine) arm(p watch.Point, wake func()) (watch.Watch, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.refused[p.Name]; err != nil {
		return nil, err
	}
	m.ever++
	a := &armed{m: m, name: p.Name, wake: wake}
	m.armed[p.Name] = append(m.armed[p.Name], a)

	return a, nil
}

// Err returns why the point is not watched any more.
func (a *armed) Err() error {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()

	return a.err
}

// Written reports whether the file was written to.
func (a *armed) Written() bool {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	written := a.written
	a.written = false

	return written
}

// Close ends the watch.
func (a *armed) Close() {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	a.m.armed[a.name] = slices.DeleteFunc(a.m.armed[a.name], func(other *armed) bool { return other == a })
}

// happens says that something happened at a point; content that a file was written to.
func (m *machine) happens(name string, content bool) {
	m.mu.Lock()
	all := slices.Clone(m.armed[name])
	for _, a := range all {
		a.written = a.written || content
	}
	m.mu.Unlock()
	for _, a := range all {
		a.wake()
	}
}

// fails ends the watches of a point.
func (m *machine) fails(name string, err error) {
	m.mu.Lock()
	m.refused[name] = err
	for _, a := range m.armed[name] {
		a.err = err
	}
	m.mu.Unlock()
	m.happens(name, false)
}

// watched returns how many watches there are.
func (m *machine) watched() (count int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, all := range m.armed {
		count += len(all)
	}

	return count
}

// listener listens at paths of a machine.
type listener struct {
	m     *machine
	paths []string
}

func (m *machine) listen(_ context.Context, paths []string) (drift.Writers, error) {
	if len(paths) == 0 {
		return nil, errors.New("nothing to listen at")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listening = append(m.listening, paths...)

	return &listener{m, paths}, nil
}

// Seen returns the writers.
func (l *listener) Seen() (out []string) {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	for _, path := range l.paths {
		if who := l.m.writers[path]; who != "" {
			out = append(out, who)
		}
	}

	return out
}

// Close ends it.
func (l *listener) Close() {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	for _, path := range l.paths {
		if i := slices.Index(l.m.listening, path); i >= 0 {
			l.m.listening = slices.Delete(l.m.listening, i, i+1)
		}
	}
}
