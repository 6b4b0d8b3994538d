package file

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
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
