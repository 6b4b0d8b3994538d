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
func New(providers ...FileProvider) *resource.Type { return resource.Of(Type{}, providers...) }

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
func (Type) Apply(ctx context.Context, env resource.Env, p FileProvider, spec *Spec, plan resource.Plan) (resource.Outcome, error) {
	before, lookErr := env.Host.Look(spec.Name)
	outcome, err := apply(ctx, env, p, spec, plan)
	if err != nil && lookErr == nil && (!spec.Force || before.Kind != files.Directory) {
		after, err := env.Host.Look(spec.Name)
		outcome.Untouched = err == nil && after == before
	}

	return outcome, err
}

func apply(ctx context.Context, env resource.Env, p FileProvider, spec *Spec, plan resource.Plan) (resource.Outcome, error) {
	if plan.Has(actionRemove) {
		return resource.Outcome{}, p.Remove(ctx, env, spec.Name, spec.Force)
	}
	attrs, err := attributes(ctx, env, spec)
	if err != nil {
		return resource.Outcome{}, err
	}
	switch {
	case plan.Has(actionSetAttributes):
		return resource.Outcome{}, p.SetAttributes(ctx, env, spec.Name, attrs)
	case plan.Has(actionCreateDirectory):
		return resource.Outcome{}, p.CreateDirectory(ctx, env, spec.Name, attrs)
	}
	content := Content{DropCapabilities: spec.DropCapabilities}
	if spec.Content != nil {
		content.Text = *spec.Content
	}
	if content.Source, err = sourcePath(env.Scope.Dir, spec); err != nil {
		return resource.Outcome{}, err
	}
	if content.Source != "" {
		entry, err := lookAtSource(env.Host, content.Source, spec)
		if err != nil {
			return resource.Outcome{}, err
		}
		content.Size = entry.Size
	}
	outcome := planned(plan)
	if outcome.After != "" {
		content.Validate = spec.Validator
	}

	err = p.Store(ctx, env, spec.Name, content, attrs)
	if errors.Is(err, syscall.EISDIR) {
		err = fmt.Errorf("%s is a directory, not a file (remove it, or declare ensure: directory)", spec.Name)
	}

	return outcome, err
}

// planned returns the digests of the plan, for Verify.
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
	if outcome.After != "" && outcome.After != resource.DigestWord(after.digest()) {
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

// FileProvider manages paths on one platform.
type FileProvider interface {
	resource.Provider
	// Status reads a path without following a link. It reads the content of a regular file only for its
	// checksum, if reads is not nil and returns true. A path that cannot be inspected is a state with
	// Unknown, and unreadable content is a state with Unreadable; neither is an error.
	Status(ctx context.Context, env resource.Env, path string, reads func(files.Entry) bool) (*State, error)
	// Store atomically creates or replaces the regular file at path. It replaces a link and never follows
	// it. It does not store content that the validate command rejects.
	Store(ctx context.Context, env resource.Env, path string, c Content, a files.Attrs) error
	// SetAttributes changes owner, group and mode of a regular file. It refuses a link.
	SetAttributes(ctx context.Context, env resource.Env, path string, a files.Attrs) error
	// CreateDirectory makes a directory and its parents, or sets the attributes of
	// an existing one.
	CreateDirectory(ctx context.Context, env resource.Env, path string, a files.Attrs) error
	// Remove removes path, and a directory with entries only with force.
	Remove(ctx context.Context, env resource.Env, path string, force bool) error
}

// Content is the content of a file: the file Source if it is set, or else Text. At most Size bytes of Source
// are copied. Validate is the command that must accept the content; it may be empty. DropCapabilities
// removes the capabilities of the file.
type Content struct {
	Text     string
	Source   string
	Size     int64
	Validate string

	DropCapabilities bool
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

// hidden reports whether the existing content cannot be shown.
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
	// notEmpty marks a directory with entries.
	notEmpty bool
	// before and after are the texts for a diff.
	before, after resource.Snippet
}

// Relations order a file after its parent directories, its source and its accounts. The removal of a
// directory comes after the removal of its entries. A directory also provides its parents.
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
	if spec.Ensure == EnsureDirectory {
		out.Provides = append(out.Provides, resource.ProvidesAbove(spec.Name)...)
	}
	if filepath.IsAbs(spec.Source) {
		out.Needs = append(out.Needs, resource.Need{What: resource.PathNeed(filepath.Clean(spec.Source)), ReadsContent: true})
	}
	out.Needs = append(out.Needs, resource.AccountNeeds(spec.Owner, spec.Group)...)

	return out
}

// Watches returns the path and the source.
func (Type) Watches(_ FileProvider, spec *Spec) []watch.Point {
	return resource.WatchPaths(spec.Name, spec.Source)
}
