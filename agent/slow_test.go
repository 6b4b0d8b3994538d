package agent_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
)

// slow is a type whose reads and changes take as long as the test wants.
type slow struct {
	mu sync.Mutex
	// takes is how long the look at a resource named look takes.
	takes time.Duration
	// release ends the change of a resource named wait.
	release chan struct{}
	begun   chan string
	done    map[string]bool
	panics  bool
	// refused is how often the change of a resource named late is, at the end of its run.
	refused int
}

type slowSpec struct {
	model.Common
}

func (*slowSpec) Validate() model.Problems { return nil }

type slowState struct {
	model.CommonState
}

type slowProvider struct{}

func (slowProvider) Name() string { return "slow" }

func (slowProvider) IsManageable(model.Facts, resource.Spec) (bool, int, error) { return true, 1, nil }

// newSlow adds the type to a node.
func newSlow(n *node) *slow {
	s := &slow{release: make(chan struct{}), begun: make(chan string, 100), done: map[string]bool{}}
	n.types = append(n.types, resource.Of[*slowSpec, *slowState, slowProvider](s, slowProvider{}))

	return s
}

// forget has a change made once more.
func (s *slow) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.done, name)
}

// manifest gives one of slow resources.
func (s *slow) manifest(alias string, names ...string) string {
	var b strings.Builder
	b.WriteString("muster:\n  resources:\n    - slow:\n")
	for _, name := range names {
		fmt.Fprintf(&b, "        - %s: {ensure: present}\n", name)
	}

	return b.String()
}

func (*slow) Info() resource.Info {
	return resource.Info{Name: "slow", Ensures: []string{"present"}, Reads: resource.Units, Writes: resource.Units, Refreshes: true}
}

// Watches returns the names that are paths.
func (*slow) Watches(_ slowProvider, spec *slowSpec) []watch.Point {
	if !strings.HasPrefix(spec.Name, "/") {
		return nil
	}

	return resource.WatchPaths(spec.Name)
}

func (*slow) New() *slowSpec { return &slowSpec{} }

func (s *slow) Status(ctx context.Context, _ resource.Env, _ slowProvider, spec *slowSpec) (*slowState, error) {
	if spec.Name == "look" {
		select {
		case <-time.After(s.takes):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.panics {
		panic("slow")
	}
	st := &slowState{}
	st.Ensure = "absent"
	if s.done[spec.Name] {
		st.Ensure = "present"
	}

	return st, nil
}

func (*slow) Plan(spec *slowSpec, st *slowState, refresh bool) (resource.Plan, error) {
	var p resource.Plan
	if refresh || st.Ensure != "present" && spec.Name != "look" {
		p.Add(model.Change{Action: "wait", Message: "Would have waited"})
	}

	return p, nil
}

func (s *slow) Apply(ctx context.Context, _ resource.Env, _ slowProvider, spec *slowSpec, _ resource.Plan) (resource.Outcome, error) {
	s.begun <- spec.Name
	if strings.HasPrefix(path.Base(spec.Name), "wait") {
		select {
		case <-s.release:
		case <-ctx.Done():
			return resource.Outcome{}, context.Cause(ctx)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[spec.Name] = true
	if path.Base(spec.Name) == "late" {
		return resource.Outcome{AtEnd: s.atEnd}, nil
	}

	return resource.Outcome{}, nil
}

// atEnd is the change of a resource named late.
func (s *slow) atEnd(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused > 0 {
		s.refused--
		return errors.New("it is refused")
	}

	return nil
}
