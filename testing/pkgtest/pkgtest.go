// Package pkgtest is what the tests of package managers have in common: they
// run in a machine of the rigs and change its packages.
package pkgtest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// Sh runs a script on the machine and returns its output. It is also for the
// end of a test, when the test's context has ended.
func Sh(t testing.TB, script string) string {
	t.Helper()
	result, err := hosttest.New(t).Run(context.WithoutCancel(t.Context()), command.Command{Argv: []string{"sh", "-euc", script}, Env: []string{"DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8"}})
	if err != nil || result.ExitCode != 0 {
		t.Fatalf("%s: exit code %d, %v\n%s%s", script, result.ExitCode, err, result.Stdout, result.Stderr)
	}

	return strings.TrimSpace(result.Stdout.String())
}

// Captured returns lines that the real programs printed: a file in testdata.
func Captured(t testing.TB, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}

	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// Env is what a provider is handed.
func Env(t testing.TB) resource.Env {
	t.Helper()

	return resource.Env{Host: hosttest.New(t), Log: hosttest.Log(t)}
}

// NoLists makes a provider's lists ones that muster has not refreshed.
func NoLists(provider string) func(t testing.TB, env resource.Env) {
	return func(t testing.TB, env resource.Env) {
		t.Helper()
		Sh(t, "mkdir -p "+env.Host.StateDir())
		if err := env.Host.Forget("refreshes", provider); err != nil {
			t.Fatal(err)
		}
	}
}

// HasLists says whether muster has refreshed the lists of a provider.
func HasLists(provider string) func(t testing.TB, env resource.Env) bool {
	return func(t testing.TB, env resource.Env) bool {
		t.Helper()
		at, err := pkg.Refreshed(env, provider)
		return err == nil && !at.IsZero()
	}
}

// Properties are the properties of a package.
func Properties(name, ensure string) func(string) typetest.Properties {
	return func(string) typetest.Properties { return typetest.Properties{"name": name, "ensure": ensure} }
}

// Lie returns success without a change, and for ensure latest a package that is absent.
func Lie(before resource.State, outcome resource.Outcome) (resource.Outcome, resource.State) {
	state := *before.(*pkg.State)
	if state.Candidate != "" {
		state.Ensure = model.EnsureAbsent
	}

	return outcome, &state
}
