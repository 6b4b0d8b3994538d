package pkg

import (
	"time"

	"github.com/musterfleet/muster/model"
)

// State is the observed state of a package. Its ensure is the installed
// version, or absent.
type State struct {
	model.CommonState
	Metadata *Metadata `json:"metadata,omitempty" jsonschema_description:"Metadata of the installed package"`
	// Candidate is the newest available version, read only for ensure latest.
	Candidate string `json:"candidate,omitempty" jsonschema_description:"Newest available version, known when ensure is latest"`
	Held      bool   `json:"held,omitempty" jsonschema_description:"Whether the package is on hold"`
	Residue   bool   `json:"residue,omitempty" jsonschema_description:"Whether configuration files of a removed package are left"`
	Broken    string `json:"broken,omitempty" jsonschema_description:"The package manager's word for an installation that is not complete"`

	// ChangedAt is when its files were last changed, if that is known.
	ChangedAt time.Time `json:"-"`

	// Unhold is the command that releases a held package. Removable reports that the held package may be
	// removed. CannotHold is why no package can be held, nil if holds work.
	Unhold     string `json:"-"`
	Removable  bool   `json:"-"`
	CannotHold error  `json:"-"`

	// NotAbsent is the error of AbsenceChecker, nil if the package is absent.
	NotAbsent error `json:"-"`

	// order compares the installed version with the wanted one, or the candidate.
	order int
	// forecast is the effect of the pending change on other packages.
	forecast forecast
}

// halfInstalled is an installation with missing files.
const halfInstalled = "half-installed"

// Metadata describes an installed package.
type Metadata struct {
	Name     string         `json:"name"`
	Version  string         `json:"version"`
	Arch     string         `json:"arch,omitempty"`
	License  string         `json:"license,omitempty"`
	URL      string         `json:"url,omitempty"`
	Summary  string         `json:"summary,omitempty"`
	Provider string         `json:"provider"`
	Extended map[string]any `json:"extended,omitempty"`

	// Full is the version for comparisons; unlike Version it has an epoch.
	Full string `json:"-"`
}

// NewState returns the state of a package with its metadata. nil metadata mean that it is not installed.
func NewState(name string, m *Metadata) *State {
	state := &State{CommonState: model.CommonState{Name: name, Ensure: model.EnsureAbsent}, Metadata: m}
	if m != nil {
		state.Ensure = m.Version
	}

	return state
}

// installed reports whether a version is installed.
func (s *State) installed() bool { return s.Ensure != model.EnsureAbsent }
