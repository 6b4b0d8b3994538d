package file

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
)

// Type is the file type.
type Type struct{}

// New returns the type with its providers, for resources.All.
func New(providers ...Posix) *resource.Type { return resource.Of(Type{}, providers...) }

// parallel is the number of files that are written in parallel, so the system syncs many of them at
// once.
const parallel = 16

// Info describes the type.
func (Type) Info() resource.Info {
	return resource.Info{
		Name:       "file",
		Summary:    "Files and directories: their existence, content, owner, group and mode",
		NameHelp:   "the absolute path, for example /etc/motd",
		Argument:   "ensure",
		Ensures:    []string{model.EnsurePresent, model.EnsureAbsent, EnsureDirectory},
		EnsureHelp: "present is a file, directory a directory; absent removes whatever is there",
		Reads:      resource.Paths | resource.Accounts,
		Writes:     resource.Paths,
		Parallel:   parallel,
	}
}

// New returns empty properties.
func (Type) New() *Spec { return &Spec{} }

// Apply makes the one change of the plan. A failure is Untouched if the path has not changed. After a
// recursive removal the path alone is no proof.
func (Type) Apply(ctx context.Context, env resource.Env, _ Posix, spec *Spec, plan resource.Plan) (resource.Outcome, error) {
	before, lookErr := env.Host.Look(spec.Name)
	if err := keepCopy(ctx, env, spec.Name, plan); err != nil {
		return resource.Outcome{Untouched: true}, err
	}
	outcome, err := apply(ctx, env, spec, plan)
	if err != nil && lookErr == nil && (!spec.Force || before.Kind != files.Directory) {
		after, err := env.Host.Look(spec.Name)
		outcome.Untouched = err == nil && after == before
	}

	return outcome, err
}

func apply(ctx context.Context, env resource.Env, spec *Spec, plan resource.Plan) (resource.Outcome, error) {
	if plan.Has(actionRemove) {
		return resource.Outcome{}, remove(ctx, env, spec)
	}
	attrs, err := attributes(ctx, env, spec)
	if err != nil {
		return resource.Outcome{}, err
	}
	switch {
	case plan.Has(actionSetAttributes):
		return resource.Outcome{}, env.Host.SetAttrs(spec.Name, attrs)
	case plan.Has(actionCreateDirectory):
		return resource.Outcome{}, env.Host.MakeDirectory(spec.Name, attrs)
	}
	outcome := planned(plan)
	err = store(ctx, env, spec, attrs, outcome.After != "")
	if errors.Is(err, syscall.EISDIR) {
		err = fmt.Errorf("%s is a directory, not a file (remove it, or declare ensure: directory)", spec.Name)
	}

	return outcome, err
}

func planned(plan resource.Plan) resource.Outcome {
	for _, c := range plan.Changes {
		if c.Property == propertyContent {
			return resource.Outcome{Before: c.From, After: c.To}
		}
	}

	return resource.Outcome{}
}

// Verify compares the path with the properties and with the planned content:
// the source may have changed since.
func (t Type) Verify(spec *Spec, outcome resource.Outcome, after *State) error {
	plan, err := t.Plan(spec, after, false)
	if err != nil {
		return err
	}
	if !plan.Empty() {
		return fmt.Errorf("still different: %s", differing(plan))
	}
	if outcome.After != "" && spec.replaces() && outcome.After != resource.DigestWord(after.digest()) {
		return fmt.Errorf("the source changed while it was copied: %s was planned, %s was stored", outcome.After, resource.DigestWord(after.digest()))
	}

	return nil
}

func differing(plan resource.Plan) string {
	words := make([]string, len(plan.Changes))
	for i, c := range plan.Changes {
		words[i] = fmt.Sprintf("%s is %s, not %s", c.Property, c.From, c.To)
	}

	return strings.Join(words, ", ")
}

// State is the observed state of a path. A symbolic link is present, or directory if it leads to a
// directory.
type State struct {
	model.CommonState
	Metadata *Metadata `json:"metadata,omitempty" jsonschema_description:"The file or directory at the path; omitted if the path does not exist"`

	// Entry is the path itself, even if it is a link.
	Entry files.Entry `json:"-"`
	// Target is the end of a link. Its kind is Absent for a dangling link. It is nil if the path is not a link.
	Target *files.Entry `json:"-"`
	// Unknown is why the path could not be inspected. Such a path is never changed.
	Unknown error `json:"-"`

	// Text is the content of the checksum, if the checksum was computed just now and the content is
	// short.
	Text *string `json:"-"`
	// Unreadable is why the content could not be read for its checksum.
	Unreadable error `json:"-"`
	// Unshown is the digest of a content that is compared but not shown, because the file does not
	// belong to the owner of its directory.
	Unshown string `json:"-"`

	want wanted
}

// Mark returns the path and its mark.
func (s *State) Mark() (path string, mark files.Mark) { return s.Name, s.Entry.Mark() }

// digest returns the digest of the content, empty for none.
func (s *State) digest() string {
	if s.Metadata == nil || s.Unshown != "" {
		return s.Unshown
	}

	return s.Metadata.Checksum
}

func (s *State) hidden() bool {
	return s.Unreadable != nil || s.Unshown != "" || s.Entry.Kind == files.File && s.digest() == ""
}

// Metadata describes an existing path.
type Metadata struct {
	Name     string         `json:"name" jsonschema_description:"The path"`
	Checksum string         `json:"checksum,omitempty" jsonschema_description:"Hex SHA-256 of a regular file's content, where it was read"`
	Owner    string         `json:"owner" jsonschema_description:"User name, or numeric id where it has no name"`
	Group    string         `json:"group" jsonschema_description:"Group name, or numeric id where it has no name"`
	Mode     string         `json:"mode" jsonschema_description:"Permissions and special bits in octal"`
	Provider string         `json:"provider"`
	MTime    time.Time      `json:"mtime" jsonschema_description:"Modification time"`
	Size     int64          `json:"size" jsonschema_description:"Bytes"`
	Extended map[string]any `json:"extended,omitempty" jsonschema_description:"Provider-specific metadata"`
}

// wanted is the desired state on this machine, with its obstacles. Plan needs it, but may not read the
// machine.
type wanted struct {
	attrs files.Attrs
	// digest and size describe the wanted content, if content is managed.
	digest string
	size   int64
	// obstacle is why the path cannot be created, replaced or removed.
	obstacle error
	// carried describes the extended attributes of a file that changes its content or owner.
	carried files.Carried
	// mask reports a link to /dev/null, which masks a unit in systemd.
	mask bool
	// copy is the path of the copy of the old file, noCopy why there can be none; both with backup.
	copy   string
	noCopy error
	// notEmpty marks a directory with entries.
	notEmpty bool
	// before and after are the texts for a diff.
	before, after resource.Snippet
}

// Relations order a file after its parent directories, its source and its accounts. The removal of a
// directory comes after the removal of its entries. A directory, or a file with parents, also provides its parents.
func (Type) Relations(spec *Spec) resource.Relations {
	if spec.Ensure == model.EnsureAbsent {
		return resource.Relations{
			Provides: resource.Provides(resource.EmptiedNeed(filepath.Dir(spec.Name))), Removes: []string{resource.PathNeed(spec.Name)},
			Needs: []resource.Need{{What: resource.EmptiedNeed(spec.Name), All: true}}, WaitsForDiskOnly: true,
		}
	}
	out := resource.Relations{
		Provides: resource.Provides(resource.PathNeed(spec.Name)), Needs: resource.NeedsAbove(spec.Name),
		WaitsForDiskOnly: spec.Validator == "",
	}
	if spec.Ensure == EnsureDirectory || spec.Parents {
		out.Provides = append(out.Provides, resource.ProvidesAbove(spec.Name)...)
	}
	if filepath.IsAbs(spec.Source) {
		out.Needs = append(out.Needs, resource.Need{What: resource.PathNeed(filepath.Clean(spec.Source)), ReadsContent: spec.replaces()})
	}
	if !spec.replaces() {
		out.SkipIfExists = []string{resource.PathNeed(spec.Name)}
	}
	out.Needs = append(out.Needs, resource.AccountNeeds(spec.Owner, spec.Group)...)

	return out
}

// Watches returns the path and the source. A source that is copied once is not watched.
func (Type) Watches(_ Posix, spec *Spec) []watch.Point {
	if !spec.replaces() {
		return resource.WatchPaths(spec.Name)
	}

	return resource.WatchPaths(spec.Name, spec.Source)
}

// Claims returns the path: as a whole if the resource always manages its content, or its absence.
func (Type) Claims(spec *Spec) []resource.Claim {
	claim := resource.Claim{Kind: resource.ClaimAttributes, Path: spec.Name}
	switch {
	case spec.Ensure == model.EnsureAbsent:
		claim.Kind = resource.ClaimAbsence
	case spec.writes(files.File):
		claim.Kind = resource.ClaimWhole
	}

	return []resource.Claim{claim}
}
