package archive

import (
	"fmt"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// The actions of a plan.
const (
	actionDownload = "download"
	actionExtract  = "extract"
	actionCleanup  = "cleanup"
	actionRemove   = "remove"
)

const propertyEnsure = "ensure"

// Plan returns the pending downloads, extraction and removals. An error is an obstacle to them.
func (Type) Plan(spec *Spec, state *State, _ bool) (resource.Plan, error) {
	switch kind := state.Entry.Kind; {
	case kind == files.Directory:
		return resource.Plan{}, fmt.Errorf("%s: path exists as a directory", spec.Name)
	case kind == files.Other && spec.Ensure != model.EnsureAbsent:
		return resource.Plan{}, fmt.Errorf("%s: path exists as a fifo, socket or device, not as a regular file", spec.Name)
	case spec.Ensure != model.EnsureAbsent:
		return planPresent(spec, state)
	}
	var plan resource.Plan
	if state.Entry.Kind != files.Absent {
		plan.Add(removal(actionRemove, "Would have removed"))
		return plan, state.want.obstacle
	}

	return plan, nil
}

func removal(action, message string) model.Change {
	return model.Change{Action: action, Message: message, Property: propertyEnsure, From: model.EnsurePresent, To: model.EnsureAbsent}
}

// planPresent fetches a removed archive again only if its creates path is missing or another
// archive was unpacked last. An archive without cleanup must match the properties.
func planPresent(spec *Spec, state *State) (plan resource.Plan, err error) {
	missing := spec.Creates != "" && !state.Metadata.CreatesExists
	pending := state.past.isPending() || state.outdated != ""
	if spec.Cleanup && !missing && !pending {
		if state.Entry.Kind != files.Absent {
			plan.Add(removal(actionCleanup, cleaned))
			return plan, state.want.obstacle
		}
		return plan, nil
	}
	plan.Changes = downloads(spec, state)
	if len(plan.Changes) > 0 {
		plan.Changes[0].Message = "Would have downloaded"
		err = state.want.obstacle
	}
	if spec.ExtractParent == "" || len(plan.Changes) == 0 && !missing && !pending {
		return plan, err
	}
	plan.Add(extraction(spec, state, missing))
	if spec.Cleanup {
		plan.Add(removal(actionCleanup, cleaned))
		err = state.want.obstacle
	}
	if state.want.target != nil {
		err = state.want.target
	}

	return plan, err
}

// extraction returns the change of unpacking, with its cause.
func extraction(spec *Spec, state *State, missing bool) model.Change {
	out := model.Change{Action: actionExtract, Message: "Would have extracted", Property: "extract_parent", From: "not extracted", To: spec.ExtractParent}
	switch {
	case missing:
		out.Property, out.From, out.To = "creates", model.EnsureAbsent, spec.Creates
	case state.outdated != "":
		out.Message = "Would have extracted again, because the checksum differs from the one last unpacked"
		out.Property, out.From, out.To = "checksum", state.outdated, spec.wantedChecksum()
	}

	return out
}

const cleaned = "Would have cleaned up"

// downloads returns the reasons to fetch the archive, as one change each.
func downloads(spec *Spec, state *State) []model.Change {
	found, meta, want := state.Entry, state.Metadata, state.want.attrs
	because := func(property, from, to string) model.Change {
		return model.Change{Action: actionDownload, Property: property, From: from, To: to}
	}
	if found.Kind != files.File {
		return []model.Change{because(propertyEnsure, found.Kind.String(), model.EnsurePresent)}
	}
	var out []model.Change
	if found.UID != want.UID {
		out = append(out, because("owner", meta.Owner, spec.Owner))
	}
	if found.GID != want.GID {
		out = append(out, because("group", meta.Group, spec.Group))
	}
	switch past := state.past; {
	case spec.Checksum != "" && meta.Checksum != spec.wantedChecksum():
		out = append(out, because("checksum", meta.Checksum, spec.wantedChecksum()))
	case spec.Checksum == "" && spec.ExtractParent != "" && past.Invalid && past.Checksum == meta.Checksum:
		// With a checksum the same archive would be fetched again.
		out = append(out, because("checksum", meta.Checksum, "that of an archive"))
	}

	return out
}
