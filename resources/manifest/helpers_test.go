package manifest_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
)

// node contains the facts and buckets of the tests.
func node(context.Context) (model.Facts, error) {
	return model.Facts{
		"os":    "debian",
		"cores": 4,
		"load":  0.5,
		"host":  map[string]any{"name": "web01", "tags": []any{"a", "b"}},
	}, nil
}

func options() manifest.Options {
	return manifest.Options{Types: testTypes(), Facts: node, Environ: map[string]string{"STAGE": "prod"}}
}

// resolve parses and resolves a document.
func resolve(t *testing.T, text string, o manifest.Options, in manifest.Inputs) (*manifest.Resolved, error) {
	t.Helper()
	doc, err := manifest.Parse("m.yaml", []byte(text))
	if err != nil {
		return nil, err
	}

	return manifest.NewLoader(o).Resolve(t.Context(), doc, in)
}

// resolved is resolve with the options of these tests, for a valid document.
func resolved(t *testing.T, text string, in manifest.Inputs) *manifest.Resolved {
	t.Helper()
	r, err := resolve(t, text, options(), in)
	if err != nil {
		t.Fatal(err)
	}

	return r
}

// outcome returns the result of resolving a document as text, one line per resource or problem.
func outcome(t *testing.T, text string, o manifest.Options, in manifest.Inputs) string {
	t.Helper()
	r, err := resolve(t, text, o, in)
	if err != nil {
		return err.Error()
	}

	return describe(t, r)
}

func describe(t *testing.T, r *manifest.Resolved) string {
	t.Helper()
	var lines []string
	for _, res := range r.Resources {
		spec, err := json.Marshal(res.Spec)
		if err != nil {
			t.Fatal(err)
		}
		line := res.Type.Name + " " + string(spec)
		if res.Excluded != "" {
			line += " excluded: " + res.Excluded
		}
		if len(res.Secrets) > 0 {
			line += " secret"
		}
		if res.ResolveDeferred != nil {
			line += " late"
		}
		lines = append(lines, line)
	}
	for _, w := range r.Warnings {
		lines = append(lines, "warning: "+w.Error())
	}

	return strings.Join(lines, "\n")
}

// lines joins the expected lines.
func lines(l ...string) string { return strings.Join(l, "\n") }

// one resolves a document with one file and returns a property of it.
func one(t *testing.T, text string, o manifest.Options, in manifest.Inputs) *thingSpec {
	t.Helper()
	r, err := resolve(t, text, o, in)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Resources) != 1 {
		t.Fatalf("%d resources", len(r.Resources))
	}

	return r.Resources[0].Spec.(*thingSpec)
}

// content returns a manifest of one file with an expression as content.
func content(value string) string {
	return "muster:\n  resources:\n    - file:\n        - /f:\n            content: " + strings.TrimSuffix(value, "\n") + "\n"
}
