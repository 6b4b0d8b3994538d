package resources_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/typetest"
)

// graph builds resources given as type and properties in turn.
func graphOf(t *testing.T, items ...any) *plan.Graph {
	t.Helper()
	types := resources.All()
	var all []*resource.Resource
	for i := 0; i < len(items); i += 2 {
		typ, _ := types.Get(items[i].(string))
		r, problems := resource.Decode(typ, typetest.Value(items[i+1]), model.Position{})
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	g, err := plan.Build(all, nil)
	if err != nil {
		t.Fatal(err)
	}

	return g
}

// TestOrderAroundAnArchive has everything declared the wrong way round.
func TestOrderAroundAnArchive(t *testing.T) {
	owned := func(name string) typetest.Properties {
		return typetest.Properties{"name": name, "owner": "root", "group": "root", "mode": "0644"}
	}
	directory := owned("/srv/cache")
	directory["ensure"] = "directory"
	g := graphOf(t,
		"exec", typetest.Properties{"name": "/opt/app/bin/setup --all", "creates": "/opt/app/done"},
		"file", owned("/opt/app/conf"),
		"archive", typetest.Properties{"name": "/srv/cache/app.zip", "url": "https://example.com/app.zip", "owner": "root", "group": "root", "extract_parent": "/opt/app", "creates": "/opt/app/bin/setup"},
		"file", directory)
	var got []string
	for _, n := range g.Nodes() {
		r := n.Resource
		got = append(got, r.Type.Name)
	}
	if want := []string{"file", "archive", "exec", "file"}; !slices.Equal(got, want) {
		t.Errorf("the order is %q, not %q", got, want)
	}
}

// TestRenderShowsNoCredentials: what an archive needs to be fetched is secret
// without being marked.
func TestRenderShowsNoCredentials(t *testing.T) {
	doc, err := manifest.Parse("m.yaml", []byte("muster:\n  resources:\n    - archive:\n        - /srv/a.tar.gz:\n            url: http://u:password1@example.com/a.tar.gz?tok=password2\n            headers: {Authorization: password3}\n            owner: root\n            group: root\n"))
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := manifest.NewLoader(manifest.Options{Types: resources.All()}).Resolve(t.Context(), doc, manifest.Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := resolved.Render()
	if err != nil || strings.Contains(string(text), "password") || !strings.Contains(string(text), "example.com") {
		t.Errorf("%s, %v", text, err)
	}
}
