package file

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// The actions of a plan, one for each method of a provider.
const (
	actionStore           = "store"
	actionSetAttributes   = "set_attributes"
	actionCreateDirectory = "create_directory"
	actionRemove          = "remove"
)

// The other properties of changes, beside owner, group and mode.
const (
	propertyEnsure  = "ensure"
	propertyContent = "content"
	propertyBackup  = "backup"
)

// Plan compares the path with the properties. An error is a path that must not be replaced or removed, or
// that could not be inspected.
func (Type) Plan(spec *Spec, state *State, _ bool) (resource.Plan, error) {
	if state.Unknown != nil {
		return resource.Plan{}, fmt.Errorf("could not inspect %s: %w", spec.Name, state.Unknown)
	}
	switch spec.Ensure {
	case model.EnsureAbsent:
		return planAbsent(spec, state)
	case EnsureDirectory:
		return planDirectory(spec, state)
	default:
		return planPresent(spec, state)
	}
}

func planAbsent(spec *Spec, state *State) (plan resource.Plan, err error) {
	removal := model.Change{Action: actionRemove, Property: propertyEnsure, From: state.Ensure, To: model.EnsureAbsent}
	switch {
	case state.Entry.Kind == files.Absent:
		return plan, nil
	case state.Entry.Kind != files.Directory:
		removal.Message = "Would have removed the file"
	case spec.Force:
		removal.Message = "Would have recursively removed the directory"
	case state.want.notEmpty:
		err := fmt.Errorf("%s: %w, force: true is required to remove it with its content", spec.Name, files.ErrNotEmpty)
		return plan, resource.PrerequisiteError{Needs: []string{resource.EmptiedNeed(spec.Name)}, Err: err}
	default:
		removal.Message = "Would have removed the directory"
	}
	err = state.planCopy(spec, &plan, &removal.Message)
	plan.Changes = slices.Insert(plan.Changes, 0, removal)
	if state.want.mask {
		plan.UndueFor = resource.MaskNeed(spec.Name)
	}

	return plan, cmp.Or(state.want.obstacle, err)
}

func planDirectory(spec *Spec, state *State) (plan resource.Plan, err error) {
	switch state.Entry.Kind {
	case files.Absent:
		plan.Add(model.Change{Action: actionCreateDirectory, Message: "Would have created directory", Property: propertyEnsure, From: model.EnsureAbsent, To: EnsureDirectory})
		return plan, state.want.obstacle
	case files.Directory:
		plan.Changes = attributeChanges(actionCreateDirectory, spec, state, state.Entry, resource.MaxMode|state.want.attrs.Manages)
		setMessage(plan, "Would have updated attributes")
		return plan, state.Entry.MayChange(state.want.attrs)
	case files.Link:
		return plan, linkedDirectory(spec, state)
	case files.File:
		return plan, fmt.Errorf("%s: path exists as a file", spec.Name)
	default:
		return plan, fmt.Errorf("%s: path exists as a fifo, socket or device", spec.Name)
	}
}

// linkedDirectory compares the directory at the end of a link. The directory belongs to another
// resource and is never changed.
func linkedDirectory(spec *Spec, state *State) error {
	switch state.Target.Kind {
	case files.Directory:
	case files.Absent:
		return fmt.Errorf("%s: path exists as a symbolic link that leads nowhere", spec.Name)
	default:
		return fmt.Errorf("%s: path exists as a symbolic link to a %s", spec.Name, state.Target.Kind)
	}
	changes := attributeChanges(actionCreateDirectory, spec, state, *state.Target, resource.MaxMode|state.want.attrs.Manages)
	if len(changes) == 0 {
		return nil
	}

	return fmt.Errorf("%s is a symbolic link to a directory with other attributes, and a link is not followed; manage the directory itself: %s", spec.Name, differing(resource.Plan{Changes: changes}))
}

func planPresent(spec *Spec, state *State) (plan resource.Plan, err error) {
	switch state.Entry.Kind {
	case files.Absent:
		plan.Add(creation(spec, state, "Would have created the file"))
		return plan, state.want.obstacle
	case files.Directory:
		return plan, fmt.Errorf("%s: path exists as a directory", spec.Name)
	case files.Other:
		return plan, fmt.Errorf("%s: path exists as a fifo, socket or device, not as a regular file", spec.Name)
	case files.Link:
		if !spec.replaces() {
			return plan, fmt.Errorf("%s is a symbolic link: with replace: false it stays, and attributes are not managed through a link", spec.Name)
		}
		if !spec.managesContent() {
			return plan, fmt.Errorf("%s is a symbolic link: without content or source only attributes are managed, and not through a link", spec.Name)
		}
		change := creation(spec, state, "Would have replaced the symbolic link with the file")
		change.From = "link"
		plan.Add(change)
		return plan, state.want.obstacle
	}
	if !spec.writes(files.File) {
		plan.Changes = attributeChanges(actionSetAttributes, spec, state, state.Entry, allBits)
		setMessage(plan, "Would have updated attributes"+state.want.attributesMessage(false))
		if !plan.Empty() && state.Entry.Links > 1 {
			return resource.Plan{}, fmt.Errorf("%s %w", spec.Name, files.ErrLinks)
		}
		return plan, cmp.Or(state.Entry.MayChange(state.want.attrs), state.want.carried.Err)
	}
	message := "Would have updated the file" + state.want.attributesMessage(spec.DropCapabilities)
	if state.digest() != state.want.digest {
		plan.Add(contentChange(spec, state, found(state)))
		err = state.planCopy(spec, &plan, &message)
		if spec.Validator != "" {
			message += resource.ValidatedFirst
		}
	}
	plan.Changes = append(plan.Changes, attributeChanges(actionStore, spec, state, state.Entry, allBits)...)
	setMessage(plan, message)
	err = cmp.Or(state.want.obstacle, err)
	if err == nil && !plan.Empty() && !spec.DropCapabilities {
		return plan, state.want.carried.Err
	}

	return plan, err
}

func (w wanted) attributesMessage(dropCapabilities bool) (message string) {
	kept, lost := w.carried.Effects(dropCapabilities)
	if len(kept) > 0 {
		message = " and preserved its " + strings.Join(kept, " and ")
	}
	if len(lost) > 0 {
		message += " and removed its " + strings.Join(lost, " and ")
	}

	return message
}

// allBits are the permissions with setuid, setgid and sticky, which make a
// file's mode differ.
const allBits = 0o7777

func creation(spec *Spec, state *State, message string) model.Change {
	if !spec.managesContent() {
		return model.Change{Action: actionStore, Message: "Would have created an empty file with requested attributes", Property: propertyEnsure, From: model.EnsureAbsent, To: model.EnsurePresent}
	}
	change := contentChange(spec, state, model.EnsureAbsent)
	change.Message = message
	if spec.Validator != "" {
		change.Message += resource.ValidatedFirst
	}

	return change
}

func contentChange(spec *Spec, state *State, from string) model.Change {
	return model.Change{Action: actionStore, Property: propertyContent, From: from, To: resource.DigestWord(state.want.digest), Diff: diff(spec, state)}
}

// attributeChanges returns a change for each of owner, group and mode that
// differs; mask selects the bits of mode.
func attributeChanges(action string, spec *Spec, state *State, found files.Entry, mask uint32) []model.Change {
	var out []model.Change
	want := state.want.attrs
	if found.UID != want.UID {
		out = append(out, model.Change{Action: action, Property: "owner", From: state.Metadata.Owner, To: spec.Owner})
	}
	if found.GID != want.GID {
		out = append(out, model.Change{Action: action, Property: "group", From: state.Metadata.Group, To: spec.Group})
	}
	if found.Mode&mask != want.Bits() || found.Listed {
		from := resource.FormatMode(found.Mode)
		if found.Listed {
			from += "+"
		}
		out = append(out, model.Change{Action: action, Property: "mode", From: from, To: resource.FormatMode(want.Bits())})
	}

	return out
}

func setMessage(plan resource.Plan, message string) {
	if !plan.Empty() {
		plan.Changes[0].Message = message
	}
}

// found returns the words for the content of the existing file.
func found(state *State) string {
	if state.hidden() && state.Unreadable == nil && state.digest() == "" {
		return resource.FormatSize(state.Entry.Size)
	}
	if state.hidden() {
		return "unreadable"
	}

	return resource.DigestWord(state.Metadata.Checksum)
}

func diff(spec *Spec, state *State) string {
	if spec.Sensitive {
		return ""
	}
	want := &state.want
	before := resource.DiffContent{Snippet: want.before, Size: state.Entry.Size, Absent: state.Entry.Kind != files.File, Unreadable: state.hidden()}
	if state.Metadata != nil {
		before.Digest = state.Metadata.Checksum
	}

	return resource.Diff(spec.Name, before, resource.DiffContent{Snippet: want.after, Size: want.size, Digest: want.digest})
}
