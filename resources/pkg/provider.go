package pkg

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
)

// Action changes a package.
type Action string

// The actions of plans and requests.
const (
	Install   Action = "install"
	Upgrade   Action = "upgrade"
	Downgrade Action = "downgrade"
	Uninstall Action = "uninstall"
	// Purge is Uninstall with the configuration files.
	Purge Action = "purge"
	// Hold prevents the package manager from changing a package, Unhold allows it.
	Hold   Action = "hold"
	Unhold Action = "unhold"
	// Configure completes an interrupted installation of the version in the request. Reinstall repairs
	// an installation with missing files.
	Configure Action = "configure"
	Reinstall Action = "reinstall"
)

// Request is a change of one package. Version is present, latest or a version; a removal ignores it.
// Candidate is the newest available version, if known.
type Request struct {
	Action    Action
	Name      string
	Version   string
	Candidate string
	// Recommends selects whether recommended packages are installed too; nil leaves this to the package manager.
	// Release is the release of the package, empty for any release. Held allows a change of a held package.
	Recommends *bool
	Release    string
	Held       bool
}

// Package is a version of a package, with the names that a manifest may use for it.
type Package struct {
	Names   []string
	Version string
}

// IsInstall reports whether a request installs a new package.
func (r Request) IsInstall() bool { return r.Action == Install }

// IsRemoval reports whether a request removes a package.
func (r Request) IsRemoval() bool { return r.Action == Uninstall || r.Action == Purge }

// ChangesHold reports whether a request only holds or releases a package.
func (r Request) ChangesHold() bool { return r.Action == Hold || r.Action == Unhold }

// Is reports whether a word of a package manager means the package of a request.
func (r Request) Is(word string) bool {
	return word == r.Name || word == WithoutNative(r.Name) || word == r.Name+"-"+r.Version
}

// Following is a maximum age: only lists that are older than their repositories are refreshed.
const Following time.Duration = math.MaxInt64

// PackageProvider is a package manager.
type PackageProvider interface {
	resource.Provider
	// VersionCmp returns -1, 0 or 1 for a lower, equal or higher version. An
	// invalid version is an error.
	VersionCmp(versionA, versionB string) (int, error)
	// StatusAll reads which versions are installed, with one command.
	StatusAll(ctx context.Context, env resource.Env, pkgs []string) ([]*State, error)
	// Candidates returns, with one command, the newest available versions, in a release if it is not empty.
	Candidates(ctx context.Context, env resource.Env, pkgs []string, release string) (map[string]string, error)
	// ChangeAll makes all requested changes in one transaction, or in as few as possible. Holds and
	// releases come last. It waits for the lock of another process.
	ChangeAll(ctx context.Context, env resource.Env, requests []Request) error
	// Simulate returns the packages that ChangeAll would remove in addition to the requests, from
	// local data only. Its errors are the errors of ChangeAll.
	Simulate(ctx context.Context, env resource.Env, requests []Request) ([]Package, error)
	// Refresh fetches package lists that are older than maxAge or than their repositories. With 0 the
	// package manager decides. latest announces a call of Candidates.
	Refresh(ctx context.Context, env resource.Env, maxAge time.Duration, latest bool) error
	// CheckHolds returns an error if packages cannot be held or released.
	CheckHolds(ctx context.Context, env resource.Env) error
	// CheckAbsent returns an error for each name that is not installed but provided by an
	// installed package, by name.
	CheckAbsent(ctx context.Context, env resource.Env, names []string) (map[string]error, error)
	// Watches returns the files that change with any package.
	Watches() []watch.Point
}

// The priorities of a package manager: on its own platform, on an unknown platform, and on the platform
// of another package manager, where a resource must name it.
const (
	priorityOwn     = 1
	priorityUnknown = 50
	priorityForeign = 99
)

// families are the values of the fact host.info.platformFamily with a known package manager.
func families() []string { return []string{"debian", "fedora", "rhel"} }

// Manageable reports whether a package manager is installed, and its priority: best on its own
// families, worst on the families of other package managers. The error names the missing program.
func Manageable(facts model.Facts, programs []string, own ...string) (bool, int, error) {
	for _, program := range programs {
		if _, err := os.Stat(program); err != nil {
			return false, 0, fmt.Errorf("there is no %s", program)
		}
	}
	host, _ := facts["host"].(map[string]any)
	info, _ := host["info"].(map[string]any)
	family, _ := info["platformFamily"].(string)
	switch {
	case slices.Contains(own, family):
		return true, priorityOwn, nil
	case slices.Contains(families(), family):
		return true, priorityForeign, nil
	default:
		return true, priorityUnknown, nil
	}
}

// Architecture returns Debian's name of the architecture of this program.
func Architecture() string {
	switch runtime.GOARCH {
	case "386":
		return "i386"
	case "arm":
		return "armhf"
	case "ppc64le":
		return "ppc64el"
	default:
		return runtime.GOARCH
	}
}

// IsNative reports whether the packages of the machine have an architecture. This includes packages for
// all architectures.
func IsNative(arch string) bool { return arch == "all" || arch == Architecture() }

// WithoutNative returns a package name without a native architecture, as dpkg does. Names of dnf have no
// colon.
func WithoutNative(name string) string {
	if bare, arch, _ := strings.Cut(name, ":"); IsNative(arch) {
		return bare
	}

	return name
}

// CanonicalName returns the package name without a redundant architecture.
func (s *Spec) CanonicalName() string { return WithoutNative(s.Name) }
