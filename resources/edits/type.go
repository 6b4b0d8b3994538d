package edits

import (
	"context"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
)

// kind is one of the types. They differ only in their properties.
type kind struct {
	name, summary string
	properties    func() Part
}

// Line returns the type line with its providers, for resources.All.
func Line(providers ...Posix) *resource.Type {
	return resource.Of(kind{"line", "Single lines of a file", func() Part { return &LineSpec{} }}, providers...)
}

// Info describes the type.
func (k kind) Info() resource.Info {
	return resource.Info{
		Name:     k.name,
		Family:   "edits",
		Summary:  k.summary,
		NameHelp: "any text, for example sshd port; an absolute path is also the path",
		Ensures:  []string{model.EnsurePresent, model.EnsureAbsent},
		Reads:    resource.Paths | resource.Accounts,
		Writes:   resource.Paths,
	}
}

// New returns empty properties.
func (k kind) New() Part { return k.properties() }

// State is the observed state of a part.
type State struct {
	model.CommonState
	Path  string `json:"path" jsonschema_description:"The file"`
	Lines []int  `json:"lines,omitempty" jsonschema_description:"Numbers of the lines that hold the part"`

	entry    files.Entry
	change   model.Change
	obstacle error
	beside   []Part
}

// Mark returns the path of the file and its mark.
func (s *State) Mark() (path string, mark files.Mark) { return s.Path, s.entry.Mark() }

// StatusAll reads each file once and applies its parts in memory.
func (kind) StatusAll(ctx context.Context, env resource.Env, _ Posix, specs []Part) ([]*State, []error) {
	states, errs := make([]*State, len(specs)), make([]error, len(specs))
	for _, at := range byPath(specs) {
		parts := selected(specs, at)
		unique := slices.Clone(parts)
		for i := len(unique) - 1; i > 0; i-- {
			if slices.Index(unique, unique[i]) < i {
				unique = slices.Delete(unique, i, i+1)
			}
		}
		found, failed := observe(ctx, env, unique)
		for i, part := range parts {
			from := slices.Index(unique, part)
			if errs[at[i]] = failed[from]; failed[from] == nil {
				state := *found[from]
				states[at[i]] = &state
			}
		}
	}

	return states, errs
}

// Plan returns the change of the observation.
func (kind) Plan(_ Part, state *State, _ bool) (plan resource.Plan, err error) {
	if state.change.Action == "" {
		return plan, nil
	}
	plan.Add(state.change)
	plan.Beside = state.beside

	return plan, state.obstacle
}

// ApplyAll reads each file once, applies its parts, and writes it once.
func (kind) ApplyAll(ctx context.Context, env resource.Env, _ Posix, specs []Part, plans []resource.Plan) ([]resource.Outcome, error) {
	outcomes, errs := make([]resource.Outcome, len(specs)), make(resource.BatchError, len(specs))
	for _, at := range byPath(specs) {
		parts := selected(specs, at)
		for i, r := range store(ctx, env, parts, besideOf(parts, selected(plans, at))) {
			outcomes[at[i]], errs[at[i]] = r.outcome, r.err
		}
	}

	return outcomes, errs.Err()
}

// besideOf returns all parts of a file, as the plans know them.
func besideOf(parts []Part, plans []resource.Plan) []Part {
	for _, plan := range plans {
		if beside, _ := plan.Beside.([]Part); len(beside) > len(parts) {
			parts = beside
		}
	}

	return parts
}

// byPath returns the positions of the parts of each file, in order.
func byPath(specs []Part) [][]int {
	var out [][]int
	groups := map[string]int{}
	for i, s := range specs {
		at, known := groups[s.path()]
		if !known {
			at = len(out)
			groups[s.path()] = at
			out = append(out, nil)
		}
		out[at] = append(out[at], i)
	}

	return out
}

func selected[T any](from []T, at []int) []T {
	out := make([]T, len(at))
	for i, position := range at {
		out[i] = from[position]
	}

	return out
}

// Relations order a part after a file resource of its path, the directories above and the accounts of a new
// file. Parts of one file have no order by themselves.
func (kind) Relations(spec Part) resource.Relations {
	path, c := spec.path(), spec.creation()
	if path == "" {
		return resource.Relations{}
	}
	out := resource.Relations{
		Needs:            append(resource.Needs(resource.PathNeed(path)), resource.NeedsAbove(path)...),
		WaitsForDiskOnly: c.Validator == "",
	}
	if c.Create && spec.Meta().Ensure != model.EnsureAbsent {
		out.Provides = []resource.Provision{{What: resource.PathNeed(path), Implicit: true}}
		out.Needs = append(out.Needs, resource.AccountNeeds(c.Owner, c.Group)...)
	}

	return out
}

// Claims returns the part of the file.
func (kind) Claims(spec Part) []resource.Claim {
	return []resource.Claim{{Kind: resource.ClaimPart, Path: spec.path(), ID: spec.id()}}
}

// Watches returns the file.
func (kind) Watches(_ Posix, spec Part) []watch.Point { return resource.WatchPaths(spec.path()) }
