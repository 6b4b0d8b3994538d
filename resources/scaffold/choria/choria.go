// Package choria is the provider of scaffolds that are rendered by
// github.com/choria-io/scaffold (docs/decisions/0007).
package choria

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/scaffold"
)

const (
	name = "choria"
	// priority is the best there is: this is the only provider.
	priority = 1
)

// Provider renders in a process of its own; the host stores the files. What it
// fetches, and what is to be stored, is kept for the run; the zero value keeps
// nothing. Make it with New.
type Provider struct {
	fetched *fetched
	kept    *kept
}

// New makes the provider.
func New() Provider { return Provider{fetched: &fetched{}, kept: &kept{}} }

// Name is choria.
func (Provider) Name() string { return name }

// IsManageable takes every scaffold.
func (Provider) IsManageable(_ model.Facts, spec resource.Spec) (bool, int, error) {
	_, ok := spec.(*scaffold.Spec)

	return ok, priority, nil
}

// Status renders the templates and compares what they give with what is there.
func (p Provider) Status(ctx context.Context, env resource.Env, spec *scaffold.Spec) (*scaffold.State, error) {
	found, err := p.look(ctx, env, spec, nil)
	if err != nil {
		return nil, err
	}

	c := comparison{provider: p, env: env, spec: spec, found: found}
	if err := c.describe(ctx); err != nil {
		return nil, err
	}
	if len(found.due) > 0 {
		found.rendered.masked = nil
		p.kept.keep(env, spec, found.rendered)
	}

	return found.state, nil
}

// found is a target as it is, with what the templates give for it.
type found struct {
	state *scaffold.State
	due   []file
	past  record
	// rendered is what the templates gave.
	rendered *rendering
}

// look compares what was rendered, or what the templates now give, with what is there.
func (p Provider) look(ctx context.Context, env resource.Env, spec *scaffold.Spec, rendered *rendering) (*found, error) {
	entry, err := env.Host.Look(spec.Name)
	if err != nil {
		return nil, err
	}
	exists := entry.Kind == files.Directory
	meta := &scaffold.Metadata{Name: spec.Name, Provider: name, TargetExists: exists, Engine: spec.Engine}
	out := &found{state: &scaffold.State{Metadata: meta}}
	out.state.Ensure = model.EnsureAbsent
	if exists {
		out.state.Ensure = model.EnsurePresent
	}
	switch {
	case spec.Source == "":
		// A question about the target alone.
		return out, nil
	case spec.Ensure == model.EnsureAbsent && !exists:
		return out, nil
	case entry.Kind == files.Link:
		out.state.Obstacle = fmt.Errorf("%s %w, name the directory itself", spec.Name, files.ErrLink)
	case !exists && entry.Kind != files.Absent:
		out.state.Obstacle = fmt.Errorf("%s: path exists as a %s, not as a directory", spec.Name, entry.Kind)
	case !exists:
		out.state.Obstacle = resource.Obstacle(env.Host, spec.Name, true)
	}
	if out.past, err = recall(env.Host, spec.Name); err != nil {
		return nil, err
	}
	if rendered == nil {
		if rendered, err = p.render(ctx, env, spec); err != nil {
			return nil, err
		}
	}
	out.rendered = rendered
	c := comparison{provider: p, env: env, spec: spec, found: out, parents: map[string]error{}}

	return out, c.compare(ctx, rendered.files)
}

// file is what a template gives.
type file struct {
	path    string
	content []byte
	digest  string
	mode    fs.FileMode
	// before is what stands there.
	before files.Entry
}
