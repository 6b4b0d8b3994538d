package choria

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
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
	// masked is the same with the secrets masked, where that was rendered.
	masked *masked
}

// masked are the files that the templates give with the secrets masked, or what
// is wrong with them then.
type masked struct {
	files   []file
	written []string
	err     error
}

// The errors of templates that have to do with a secret.
var (
	errForSecret  = errors.New("fails for the secret values it is given")
	errSecretPath = errors.New("the path of a file that a template writes depends on a secret, and paths are shown (give it another name)")
)

// render renders the templates. Nothing of the target is touched or looked at.
// No error of theirs, and no path, has anything of a secret.
func (p Provider) render(ctx context.Context, env resource.Env, spec *scaffold.Spec) (*rendering, error) {
	tree, err := p.tree(ctx, env, spec)
	if err != nil {
		return nil, err
	}
	of := process{env: env, spec: spec, tree: tree, compares: env.Scope.Origin != nil || spec.Sensitive}
	files, err := of.files(ctx)
	out := &rendering{files: files, secret: of.secret}
	if context.Cause(ctx) != nil || !of.secret || of.done == nil || err == nil && len(of.written()) == 0 {
		return out, err
	}
	if out.masked = p.mask(ctx, env, spec); err == nil {
		return out, of.checkPaths(out.masked)
	}
	if out.masked.err == nil {
		out.masked.err = of.in(errForSecret)
	}

	return nil, out.masked.err
}

// mask renders the templates with the secrets masked.
func (p Provider) mask(ctx context.Context, env resource.Env, spec *scaffold.Spec) *masked {
	tree, err := p.tree(ctx, env, spec)
	if err != nil {
		return &masked{err: err}
	}
	of := process{env: env, spec: spec, tree: tree, masking: true}
	files, err := of.files(ctx)

	return &masked{files: files, written: of.written(), err: err}
}

// checkPaths refuses paths that templates write and that are not the same with
// the secrets masked, unless they stand in a template just so.
func (p *process) checkPaths(masked *masked) error {
	for _, name := range p.written() {
		known := slices.Contains(masked.written, name)
		for _, text := range p.tree.texts {
			known = known || strings.Contains(text, name)
		}
		if !known {
			return errSecretPath
		}
	}

	return nil
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
	if masked && spec.Sensitive {
		maps.Copy(data, maskAll(spec.Data).(map[string]any))
	} else {
		maps.Copy(data, spec.Data)
	}
	out["Data"], out["data"] = data, data

	return out
}

// maskAll masks every text: a secret may be in any.
func maskAll(v any) any {
	switch v := v.(type) {
	case string:
		return model.Redacted
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = maskAll(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = maskAll(value)
		}
		return out
	default:
		return v
	}
}
