package archive

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
	hostarchive "github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
)

// Type is the archive type.
type Type struct{}

// New returns the type with its providers, for resources.All.
func New(providers ...HTTP) *resource.Type { return resource.Of(Type{}, providers...) }

// Info describes the type.
func (Type) Info() resource.Info {
	return resource.Info{
		Name:       "archive",
		Summary:    "Archives: fetched, unpacked, and removed again",
		NameHelp:   "the absolute path of the archive, for example /var/cache/app.tar.gz",
		Argument:   "url",
		Ensures:    []string{model.EnsurePresent, model.EnsureAbsent},
		EnsureHelp: "absent removes the archive; unpacked files stay",
		Outputs:    []resource.Output{{Name: checksumValue, Help: "SHA-256 of the archive in hex, also after cleanup"}},
		Reads:      resource.Paths | resource.Accounts,
		Writes:     resource.Paths,
		OwnTimeout: true,
	}
}

// New returns properties with their defaults.
func (Type) New() *Spec { return &Spec{MaxSize: DefaultMaxSize} }

// checksumValue is the name of the only output.
const checksumValue = "checksum"

// Apply fetches, unpacks and removes as planned. The pending extraction is
// recorded before the archive is placed, and cleared afterwards.
func (Type) Apply(ctx context.Context, env resource.Env, p HTTP, spec *Spec, plan resource.Plan) (outcome resource.Outcome, err error) {
	checksum := ""
	if plan.Has(actionDownload) {
		if checksum, err = download(ctx, env, p, spec); err != nil {
			return outcome, err
		}
		outcome.Values = map[string]any{checksumValue: checksum}
	}
	if plan.Has(actionExtract) {
		if err := extract(ctx, env, p, spec, checksum); err != nil {
			return outcome, err
		}
	}
	switch {
	case plan.Has(actionCleanup):
		err = cleanUp(env, spec)
	case plan.Has(actionRemove):
		if err = env.Host.Remove(spec.Name); err == nil {
			err = env.Host.Forget(records, spec.Name)
		}
	}

	return outcome, err
}

// cleanUp keeps an archive that did not make its creates path: otherwise every
// run would fetch it. Verify reports that.
func cleanUp(env resource.Env, spec *Spec) error {
	created, err := env.Host.Follow(spec.Creates)
	if err != nil || created.Kind == files.Absent {
		return err
	}

	return env.Host.Remove(spec.Name)
}

func download(ctx context.Context, env resource.Env, p HTTP, spec *Spec) (checksum string, err error) {
	attrs, err := attributes(ctx, env, spec)
	if err != nil {
		return "", err
	}

	// Not in the return statement: Go may evaluate checksum there before the call.
	err = p.Download(ctx, env, spec, attrs, func(arrived string) error {
		checksum = arrived
		if err := spec.CheckSum(arrived); err != nil || spec.ExtractParent == "" {
			return err
		}
		return remember(ctx, env.Host, record{Archive: spec.Name, Checksum: arrived})
	})

	return checksum, err
}

// extract unpacks the downloaded archive, or with no checksum the existing one.
func extract(ctx context.Context, env resource.Env, p HTTP, spec *Spec, downloaded string) error {
	format, err := spec.ArchiveFormat()
	if err != nil {
		return err
	}
	content, err := hostarchive.Open(ctx, env.Host.Disk, spec.Name, format)
	if err != nil {
		return err
	}
	defer content.Close()
	if err := spec.CheckSum(content.Checksum); err != nil {
		return err
	}
	if spec.Checksum == "" && content.Checksum != downloaded && content.Foreign != nil {
		return content.Foreign
	}
	r := record{Archive: spec.Name, Checksum: content.Checksum}
	if content.Checksum != downloaded {
		// A partial extraction may make the creates path.
		if err := remember(ctx, env.Host, r); err != nil {
			return err
		}
	}
	if err := rememberTarget(ctx, env.Host, spec, unpacked{Archive: spec.Name, Checksum: content.Checksum, Run: env.RunID}); err != nil {
		return err
	}
	err = p.Extract(ctx, env, spec, content)
	if errors.Is(err, hostarchive.ErrLeadsOut) {
		err = fmt.Errorf("%w (set links: keep to create the link as it is)", err)
	}
	switch {
	case errors.Is(err, hostarchive.ErrNotArchive) && spec.Checksum == "":
		r.Invalid = true
		return errors.Join(fmt.Errorf("%w; the next run fetches it again", err), remember(ctx, env.Host, r))
	case isRefused(err) && spec.Checksum == "":
		return fmt.Errorf("%w; the archive stays and is not fetched again: remove %s to fetch it again, or set checksum", err, spec.Name)
	case err != nil:
		return err
	}
	r.Extracted = true

	return remember(ctx, env.Host, r)
}

func isRefused(err error) bool {
	return slices.ContainsFunc([]error{hostarchive.ErrUnsafeEntry, hostarchive.ErrEntryType, files.ErrTooLarge, hostarchive.ErrTooManyEntries}, func(refusal error) bool { return errors.Is(err, refusal) })
}

// Verify checks that no change is due, and explains a wrong creates.
func (t Type) Verify(spec *Spec, outcome resource.Outcome, after *State) error {
	plan, err := t.Plan(spec, after, false)
	arrived, fetched := outcome.Values[checksumValue]
	switch {
	case err != nil:
		return err
	case spec.Ensure != model.EnsureAbsent && spec.Creates != "" && !after.Metadata.CreatesExists && !plan.Has(actionDownload):
		kept := ""
		if spec.Cleanup {
			kept = "; the archive stays until it does"
		}
		return fmt.Errorf("%s was unpacked into %s, but %s is missing: `creates` must name a path in the archive%s", spec.Name, spec.ExtractParent, spec.Creates, kept)
	case !plan.Empty():
		return fmt.Errorf("still due: %s", plan.Message())
	case fetched && after.Entry.Kind == files.File && after.Metadata.Checksum != arrived:
		return fmt.Errorf("it changed after the download: its checksum is %s, not %s", after.Metadata.Checksum, arrived)
	}

	return nil
}

// Outputs returns the checksum, also of a cleaned-up archive.
func (Type) Outputs(spec *Spec, state *State, outcome resource.Outcome) map[string]any {
	checksum, arrived := outcome.Values[checksumValue].(string)
	switch {
	case arrived:
	case state.Metadata.Checksum != "":
		checksum = state.Metadata.Checksum
	case state.past.Extracted:
		checksum = state.past.Checksum
	default:
		checksum = spec.wantedChecksum()
	}
	if checksum == "" {
		return nil
	}

	return map[string]any{checksumValue: checksum}
}

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
		out = append(out, because("checksum", meta.Checksum, "the checksum of an archive"))
	}

	return out
}

// mode is the mode of an archive. Other users must not read a file that needs a password.
const mode = 0o640

// Status reads the archive and resolves the properties on this machine. A
// missing account is a resource.PrerequisiteError.
func (Type) Status(ctx context.Context, env resource.Env, p HTTP, spec *Spec) (*State, error) {
	state, err := p.Status(ctx, env, spec)
	if err != nil {
		return nil, err
	}
	if state.past, err = recall(env.Host, spec.Name); err != nil {
		return nil, err
	}
	if state.Entry.Kind != files.Absent {
		state.want.obstacle = resource.MayReplace(env.Host, spec.Name)
	}
	if spec.Ensure == model.EnsureAbsent || !spec.describes() {
		return state, nil
	}
	if state.want.attrs, err = attributes(ctx, env, spec); err != nil {
		return nil, err
	}
	if state.Entry.Kind == files.Absent {
		state.want.obstacle = resource.Obstacle(env.Host, spec.Name, false)
	}
	if spec.ExtractParent != "" {
		state.want.target = targetObstacle(env, spec.ExtractParent)
		if created, err := env.Host.Follow(spec.Creates); spec.Creates != "" && err == nil && created.Kind == files.File && state.want.target == nil {
			if err := files.MayReplace(spec.Creates); errors.Is(err, paths.ErrMounted) {
				state.want.target = err
			}
		}
		last, err := recallTarget(env.Host, spec)
		if err != nil {
			return nil, err
		}
		state.outdated = last.outdated(spec, state.past, env.RunID)
	}

	return state, nil
}

func attributes(ctx context.Context, env resource.Env, spec *Spec) (files.Attrs, error) {
	uid, gid, err := resource.ResolveAccounts(ctx, env.Host, spec.Owner, spec.Group)

	return files.Attrs{UID: uid, GID: gid, Mode: mode}, err
}

func targetObstacle(env resource.Env, path string) error {
	entry, err := env.Host.Follow(path)
	switch {
	case err != nil:
		return err
	case entry.Kind == files.Directory:
		return nil
	case entry.Kind != files.Absent:
		return fmt.Errorf("extract_parent %s %w", path, files.ErrNotDirectory)
	}

	return resource.Obstacle(env.Host, path, true)
}

// State is the observed state of an archive.
type State struct {
	model.CommonState
	Metadata *Metadata `json:"metadata,omitempty" jsonschema_description:"The file at the path"`

	// Entry is the path itself, even if it is a link.
	Entry files.Entry `json:"-"`

	want wanted
	past record
	// outdated is the checksum of the unpacked archive if it is not the declared one, else empty.
	outdated string
}

// Metadata describes the archive file and its creates path.
type Metadata struct {
	Name          string    `json:"name" jsonschema_description:"The path"`
	Checksum      string    `json:"checksum,omitempty" jsonschema_description:"SHA-256 of the archive in hex, where it was read"`
	ArchiveExists bool      `json:"archive_exists" jsonschema_description:"Whether the archive exists"`
	CreatesExists bool      `json:"creates_exists" jsonschema_description:"Whether the path in creates exists"`
	Owner         string    `json:"owner,omitempty" jsonschema_description:"User name, or numeric id where it has no name"`
	Group         string    `json:"group,omitempty" jsonschema_description:"Group name, or numeric id where it has no name"`
	MTime         time.Time `json:"mtime,omitzero" jsonschema_description:"Modification time of the archive"`
	Size          int64     `json:"size,omitempty" jsonschema_description:"Bytes"`
	Provider      string    `json:"provider"`
}

// wanted is the desired state on this machine, with its obstacles. Plan needs it, but may not read the
// machine.
type wanted struct {
	attrs files.Attrs
	// obstacle prevents the download and the removal of the archive, target the unpacking.
	obstacle, target error
}

// Relations order an archive after its accounts and the parent directories of the archive and its
// target, and before resources that need its files.
func (Type) Relations(spec *Spec) resource.Relations {
	if spec.Ensure == model.EnsureAbsent {
		return resource.Relations{Provides: resource.Provides(resource.EmptiedNeed(filepath.Dir(spec.Name))), Removes: []string{resource.PathNeed(spec.Name)}}
	}
	out := resource.Relations{Needs: resource.NeedsAbove(spec.Name)}
	if !spec.Cleanup {
		out.Provides = resource.Provides(resource.PathNeed(spec.Name))
	}
	out.Needs = append(out.Needs, resource.AccountNeeds(spec.Owner, spec.Group)...)
	if spec.ExtractParent == "" {
		return out
	}
	if spec.Creates != "" {
		out.SkipIfExists = []string{resource.PathNeed(spec.Creates)}
	}
	target := resource.PathNeed(spec.ExtractParent)
	out.Provides = append(out.Provides, resource.Provides(append([]string{target}, out.SkipIfExists...)...)...)
	out.Needs = append(append(out.Needs, resource.Need{What: target}), resource.NeedsAbove(spec.ExtractParent)...)

	return out
}

// Watches returns the archive and the creates path. muster does not record other unpacked files.
func (Type) Watches(_ HTTP, spec *Spec) []watch.Point {
	return resource.WatchPaths(spec.Name, spec.Creates)
}

// Claims returns the path of an archive that stays.
func (Type) Claims(spec *Spec) []resource.Claim {
	if spec.Cleanup || spec.Ensure == model.EnsureAbsent {
		return nil
	}

	return []resource.Claim{{Kind: resource.ClaimWhole, Path: spec.Name}}
}
