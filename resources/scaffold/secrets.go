package scaffold

import (
	"context"
	"regexp"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/template"
)

// learnNames sets the names that the templates see, and judges the templates.
func (r *rendering) learnNames(ctx context.Context) {
	r.names = template.Names{"Facts": r.env.Facts, "Environ": map[string]any{}}
	r.names["facts"], r.names["environ"] = r.names["Facts"], r.names["Environ"]
	var known resource.Secrets
	own := r.spec.Data
	if r.spec.Sensitive && own != nil {
		// Any string may be a secret.
		own, _ = template.Copy(own, func(v any) any {
			if text, is := v.(string); is {
				return model.NewSecret(text)
			}
			return v
		}).(map[string]any)
	}
	if origin := r.env.Scope.Origin; origin != nil {
		r.names, known = origin.Names(ctx, r.env.Facts, own)
	}
	r.used = known.Used
	if r.spec.Data == nil {
		r.judge(known.Data)
		return
	}
	r.names["Data"], r.names["data"] = r.spec.Data, r.spec.Data
	r.judge(own)
}

// judge finds the templates that use a secret, and those that may show one which does.
func (r *rendering) judge(data map[string]any) {
	if !template.Holds(data) {
		return
	}
	left, right := r.spec.Delimiters()
	for name, text := range r.tree.texts {
		j := template.Judge{Data: data}
		j.Text(text, left, right, r.spec.Engine != EngineGo)
		r.flows = r.flows || j.Flows
		if j.Found != template.Unused {
			r.secret[name] = true
		}
	}
	if len(r.secret) == 0 {
		return
	}
	renders := regexp.MustCompile(`\b(render|include|import|extends)\b`)
	for name, text := range r.tree.texts {
		r.secret[name] = r.secret[name] || renders.MatchString(text)
	}
}

// takeUsed marks a template if a function has returned a secret to it.
func (r *rendering) takeUsed(name string) {
	if r.used != nil && r.used() {
		r.secret[name], r.flows = true, true
	}
}
