package pkg

import (
	"context"
	"math"
	"time"

	"github.com/musterfleet/muster/resources/resource"
)

// Action is what is done to a package.
type Action string

// The actions of plans and requests.
const (
	Install   Action = "install"
	Upgrade   Action = "upgrade"
	Downgrade Action = "downgrade"
	Uninstall Action = "uninstall"
)

// Request asks for a change of one package. Version is present, latest or a
// version, and without meaning where the package is uninstalled.
type Request struct {
	Action  Action
	Name    string
	Version string
}

// Following is the age of lists that are only to be those of the repositories of now.
const Following time.Duration = math.MaxInt64

// PackageProvider is a package manager. The specification names its methods for
// one package (spec/README, providers); what asks and changes many is Together.
type PackageProvider interface {
	resource.Provider
	// Install installs a version: present, latest or one by its number.
	Install(ctx context.Context, env resource.Env, pkg, version string) error
	// Upgrade goes to a higher version or to latest, Downgrade to a lower version.
	Upgrade(ctx context.Context, env resource.Env, pkg, version string) error
	Downgrade(ctx context.Context, env resource.Env, pkg, version string) error
	// Uninstall removes a package and keeps its configuration files.
	Uninstall(ctx context.Context, env resource.Env, pkg string) error
	// Status says which version is installed.
	Status(ctx context.Context, env resource.Env, pkg string) (*State, error)
	// VersionCmp returns -1, 0 or 1 for a lower, equal or higher version. A version
	// that cannot be one is an error.
	VersionCmp(versionA, versionB string, ignoreTrailingZeroes bool) (int, error)
	Together
}

// Together is what a package manager does for many packages at once.
type Together interface {
	// StatusAll is Status of all, with one question.
	StatusAll(ctx context.Context, env resource.Env, pkgs []string) ([]*State, error)
	// Candidates gives, with one question, the version that latest would come to, of those packages it is known of.
	Candidates(ctx context.Context, env resource.Env, pkgs []string) (map[string]string, error)
	// ChangeAll does all that is requested in one transaction, or in as few as the
	// package manager can. It waits for the lock of another process.
	ChangeAll(ctx context.Context, env resource.Env, requests []Request) error
	// Refresh gets new package lists when those there are older than maxAge or not
	// of the repositories of now; with 0 it leaves them to the package manager.
	// latest reports whether candidates will be asked for.
	Refresh(ctx context.Context, env resource.Env, maxAge time.Duration, latest bool) error
}
