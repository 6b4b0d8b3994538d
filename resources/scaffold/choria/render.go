package choria

import (
	"context"
	"maps"

	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/scaffold"
	"github.com/musterfleet/muster/resources/template"
)

const (
	// partials is the directory of templates that others render; it gives no files.
	partials = "_partials"
	// writtenMode is that of files that a template makes by write.
	writtenMode = 0o644
	// noValue is what a Go template writes for a key that is missing.
	noValue = "<no value>"
)

// rendering is what the templates come to.
type rendering struct {
	// files are in the order of their paths.
	files []file
	// secret says that some may depend on a secret.
	secret bool
}

// render renders the templates. Nothing of the target is touched or looked at.
func (p Provider) render(ctx context.Context, env resource.Env, spec *scaffold.Spec, masked bool) (*rendering, error) {
	tree, err := p.tree(ctx, env, spec)
	if err != nil {
		return nil, err
	}
	of := process{env: env, spec: spec, tree: tree, names: names(ctx, env, spec, masked)}
	if env.Scope.Origin != nil && !spec.Sensitive && !masked {
		of.masked = names(ctx, env, spec, true)
	}
	files, err := of.files(ctx)

	return &rendering{files: files, secret: of.secret}, err
}

// names are what the templates see.
func names(ctx context.Context, env resource.Env, spec *scaffold.Spec, masked bool) template.Names {
	out := template.Names{}
	if env.Scope.Origin != nil {
		out = env.Scope.Origin.Names(ctx, env.Facts, masked)
	} else {
		facts := map[string]any{}
		maps.Copy(facts, env.Facts)
		out["Facts"], out["facts"], out["Environ"], out["environ"] = facts, facts, map[string]any{}, map[string]any{}
	}
	data := map[string]any{}
	if of, is := out["Data"].(map[string]any); is {
		maps.Copy(data, of)
	}
	maps.Copy(data, spec.Data)
	out["Data"], out["data"] = data, data

	return out
}
