package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
)

// Type is the link type.
type Type struct{}

// New returns the type with its providers, for resources.All.
func New(providers ...Posix) *resource.Type { return resource.Of(Type{}, providers...) }

// Posix manages links with system calls.
type Posix struct{}

// Name is posix.
func (Posix) Name() string { return "posix" }

// IsManageable accepts every path.
func (Posix) IsManageable(model.Facts, resource.Spec) (bool, int, error) { return true, 1, nil }

// Info describes the type.
func (Type) Info() resource.Info {
	return resource.Info{
		Name:       "link",
		Summary:    "Symbolic links",
		NameHelp:   "the absolute path of the link, for example /opt/app/current",
		Argument:   "target",
		Ensures:    []string{model.EnsurePresent, model.EnsureAbsent},
		EnsureHelp: "absent removes the link, not its target",
		Reads:      resource.Paths | resource.Accounts,
		Writes:     resource.Paths,
		Parallel:   16,
	}
}

// New returns empty properties.
func (Type) New() *Spec { return &Spec{} }

// Status reads the link, and what keeps it from being made or removed.
func (Type) Status(ctx context.Context, env resource.Env, _ Posix, spec *Spec) (*State, error) {
	h := env.Host
	entry, err := h.Look(spec.Name)
	if err != nil {
		return nil, err
	}
	state := &State{entry: entry, CommonState: model.CommonState{Ensure: model.EnsureAbsent}}
	if entry.Kind != files.Absent {
		state.Kind, state.Ensure = entry.Kind.String(), model.EnsurePresent
		state.Owner, state.Group = h.UserName(ctx, entry.UID), h.GroupName(ctx, entry.GID)
	}
	switch entry.Kind {
	case files.Link:
		state.Target, err = files.ReadLink(spec.Name)
	case files.Directory:
		state.isEmpty, err = files.IsEmpty(spec.Name)
	}
	if err != nil {
		return nil, err
	}
	if entry.Kind != files.Absent {
		state.obstacle = resource.MayReplace(h, spec.Name)
	} else if spec.Ensure == model.EnsurePresent && spec.Target != "" {
		state.obstacle = resource.Obstacle(h, spec.Name, false)
	}
	if spec.Ensure == model.EnsurePresent && spec.Target != "" {
		err = resolveOwner(ctx, env, spec, state)
	}

	return state, err
}

// resolveOwner sets the wanted owner and group. Without the properties, a link with the target keeps its own, and
// a new link gets the owner of LinkOwner.
func resolveOwner(ctx context.Context, env resource.Env, spec *Spec, state *State) error {
	uid, gid, err := resource.ResolveAccounts(ctx, env.Host, cmp.Or(spec.Owner, "0"), cmp.Or(spec.Group, "0"))
	if err != nil {
		return err
	}
	state.uid, state.gid = state.entry.UID, state.entry.GID
	if state.Target != spec.Target && state.obstacle == nil {
		if state.uid, state.gid, err = files.LinkOwner(spec.Name); err != nil {
			return err
		}
	}
	if spec.Owner != "" {
		state.uid = uid
	}
	if spec.Group != "" {
		state.gid = gid
	}
	if state.obstacle == nil {
		state.obstacle = files.MayLink(spec.Name, state.uid)
		state.isUnsafe = errors.Is(state.obstacle, paths.ErrUnsafe)
	}

	return nil
}

// The actions of a plan.
const (
	actionLink   = "link"
	actionRemove = "remove"
)

// Plan compares the path with the properties.
func (Type) Plan(spec *Spec, state *State, _ bool) (plan resource.Plan, err error) {
	kind := state.entry.Kind
	switch {
	case spec.Ensure == model.EnsureAbsent && kind == files.Absent:
		return plan, nil
	case spec.Ensure == model.EnsureAbsent && kind != files.Link:
		return plan, fmt.Errorf("%s is no link but a %s: a `file` with ensure: absent removes it", spec.Name, kind)
	case spec.Ensure == model.EnsureAbsent:
		plan.Add(model.Change{Action: actionRemove, Message: "Would have removed the link", Property: "ensure", From: model.EnsurePresent, To: model.EnsureAbsent})
		return plan, state.obstacle
	case kind == files.Link:
		plan.Changes = differences(spec, state)
	case kind == files.Absent:
		plan.Add(model.Change{Action: actionLink, Message: "Would have created the link", Property: "target", From: model.EnsureAbsent, To: spec.Target})
	case kind == files.Directory && !state.isEmpty:
		return plan, fmt.Errorf("%s is a directory with entries, which a link does not replace: remove it", spec.Name)
	case kind != files.File && kind != files.Directory:
		return plan, fmt.Errorf("%s is a %s, which a link does not replace: remove it", spec.Name, kind)
	case !spec.Force:
		return plan, fmt.Errorf("%s is a %s: set force: true to replace it by the link", spec.Name, kind)
	default:
		plan.Add(model.Change{Action: actionLink, Message: fmt.Sprintf("Would have replaced the %s by a link", kind), Property: "target", From: kind.String(), To: spec.Target})
	}
	if plan.Empty() && (spec.Owner == "" || !state.isUnsafe) {
		return plan, nil
	}

	return plan, state.obstacle
}

// differences returns the changes of an existing link.
func differences(spec *Spec, state *State) (out []model.Change) {
	if state.Target != spec.Target {
		out = append(out, model.Change{Action: actionLink, Message: fmt.Sprintf("Would have changed the target from %s to %s", state.Target, spec.Target), Property: "target", From: state.Target, To: spec.Target})
	}
	if spec.Owner != "" && state.entry.UID != state.uid {
		out = append(out, model.Change{Action: actionLink, Property: "owner", From: state.Owner, To: spec.Owner})
	}
	if spec.Group != "" && state.entry.GID != state.gid {
		out = append(out, model.Change{Action: actionLink, Property: "group", From: state.Group, To: spec.Group})
	}
	if len(out) > 0 && out[0].Message == "" {
		out[0].Message = "Would have updated attributes"
	}

	return out
}

// Apply makes or removes the link. It observes the path again, because the path or its directory may be new.
func (t Type) Apply(ctx context.Context, env resource.Env, p Posix, spec *Spec, plan resource.Plan) (resource.Outcome, error) {
	state, err := t.Status(ctx, env, p, spec)
	if err == nil {
		_, err = t.Plan(spec, state, false)
	}
	switch {
	case err != nil:
		return resource.Outcome{Untouched: true}, err
	case plan.Has(actionRemove):
		return resource.Outcome{}, env.Host.Remove(spec.Name)
	}

	return resource.Outcome{}, env.Host.Link(spec.Name, spec.Target, state.uid, state.gid)
}

// Relations order a link after the directories above it, its accounts and its target, which need not exist.
func (Type) Relations(spec *Spec) resource.Relations {
	if spec.Ensure == model.EnsureAbsent {
		return resource.Relations{
			Provides: resource.Provides(resource.EmptiedNeed(filepath.Dir(spec.Name))), Removes: []string{resource.PathNeed(spec.Name)}, WaitsForDiskOnly: true,
		}
	}
	needs := append(resource.NeedsAbove(spec.Name), resource.Need{What: resource.PathNeed(spec.destination()), All: true})

	return resource.Relations{
		Provides: resource.Provides(resource.PathNeed(spec.Name)), Needs: append(needs, resource.AccountNeeds(spec.Owner, spec.Group)...), WaitsForDiskOnly: true,
	}
}

// Claims returns the path.
func (Type) Claims(spec *Spec) []resource.Claim {
	if spec.Ensure == model.EnsureAbsent {
		return []resource.Claim{{Kind: resource.ClaimAbsence, Path: spec.Name}}
	}

	return []resource.Claim{{Kind: resource.ClaimLink, Path: spec.Name}}
}

// Watches returns the link and its target.
func (Type) Watches(_ Posix, spec *Spec) []watch.Point {
	if spec.Ensure == model.EnsureAbsent {
		return resource.WatchPaths(spec.Name)
	}

	return resource.WatchPaths(spec.Name, spec.destination())
}
