// Package typetest is the contract of resource types as a test suite. Each type passes it with its cases over
// a real host.
package typetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
)

// Config is a type with the cases it is tried on.
type Config struct {
	Type  *resource.Type
	Facts model.Facts
	Cases []Case
	// ReadOnly reports whether a command, with its arguments, only reads. No other may
	// be started while observing and planning, which is all that noop does; nil
	// allows none.
	ReadOnly func(command string) bool
	// Lie returns the state that Verify sees when a provider lies. Nil: a success without changes.
	Lie func(before resource.State, outcome resource.Outcome) (resource.Outcome, resource.State)
}

// Only returns a ReadOnly for the commands with these beginnings.
func Only(beginnings ...string) func(command string) bool {
	return func(command string) bool {
		return slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(command, b) })
	}
}

// Case is one resource on one machine. All its files are below one directory.
type Case struct {
	Name string
	// Setup prepares the machine.
	Setup func(t *testing.T, dir string)
	// Properties are the resource's own.
	Properties func(dir string) Properties
	// Children contains the results of the included resources.
	Children model.Counts
	// Refresh plans as after a change of what the resource subscribes to.
	Refresh bool
	// Message is the text of noop; empty when nothing is pending.
	Message string
	// Error is part of the error for a state that must not be touched.
	Error string
	// Repeats marks a change that stays pending after it was made: a refresh, or a command without a guard.
	Repeats bool
	// Check inspects the result.
	Check func(t *testing.T, dir string)
	// Drift changes by hand what the case has made: who watches the resource must be
	// woken, and something must be due. Nil changes nothing.
	Drift func(t testing.TB, dir string)
}

// Run tries every case, one change at a time and, where the type has that, in
// one transaction. It fails the test wherever the contract is broken.
func Run(t *testing.T, c Config) {
	t.Run("description", func(t *testing.T) { report(t, describe(c.Type)) })
	for _, each := range c.Cases {
		t.Run(each.Name, func(t *testing.T) { try(t, c, each, false) })
		if c.Type.ApplyAll != nil {
			t.Run(each.Name+", together", func(t *testing.T) { try(t, c, each, true) })
		}
	}
}

func try(t *testing.T, c Config, each Case, together bool) {
	dir := t.TempDir()
	if each.Setup != nil {
		each.Setup(t, dir)
	}
	h, commands := hosttest.Traced(t)
	report(t, violations(t, c, each, h, commands, dir, together))
	if each.Check != nil && !t.Failed() {
		each.Check(t, dir)
	}
}

func report(t *testing.T, violations []string) {
	t.Helper()
	if len(violations) > 0 {
		t.Fatalf("the contract is broken:\n%s", strings.Join(violations, "\n"))
	}
}

// violations takes a resource through its life and gives every breach of the
// contract. It fails the test only when the case itself makes no sense.
func violations(t testing.TB, c Config, each Case, h *host.Host, commands func() []string, dir string, together bool) []string {
	t.Helper()
	s := subject{config: c, each: each, dir: dir, typ: c.Type, together: together, commands: commands, env: resource.Env{
		Host: h, Facts: c.Facts, Children: each.Children, Log: hosttest.Log(t), Scope: resource.Scope{Dir: dir},
	}}
	s.spec = s.decode(t)
	var err error
	if s.provider, err = c.Type.Select(c.Facts, s.spec); err != nil {
		t.Fatalf("no provider: %v", err)
	}
	if plan, due := s.look(t); due {
		s.change(t, plan)
	}

	return s.broken
}
