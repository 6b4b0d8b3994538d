package build_test

import (
	"bytes"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/schemas/internal/build"
	"github.com/musterfleet/muster/testing/setting"
)

// TestATypeThatIsAdded is in the schemas as soon as it is in the list.
func TestATypeThatIsAdded(t *testing.T) {
	all, err := build.All(append(resources.All(), resource.Of(setting.New(setting.Plain{}))))
	if err != nil {
		t.Fatal(err)
	}
	for name, documents := range map[string]map[string]bool{
		"manifest": {
			`{"muster": {"resources": [{"setting": [{"/etc/hostname": {"value": "web01"}}]}]}}`:       true,
			`{"muster": {"resources": [{"setting": {"name": "/etc/hostname", "ensure": "absent"}}]}}`: true,
			`{"muster": {"resources": [{"setting": [{"/etc/hostname": {"valeu": "web01"}}]}]}}`:       false,
			`{"muster": {"resources": [{"setting": [{"/etc/hostname": {"ensure": "there"}}]}]}}`:      false,
		},
		"ensure_request": {
			`{"protocol": "io.choria.ccm.v1.resource.ensure.request", "type": "setting", "properties": {"name": "/x", "value": "y"}}`: true,
			`{"protocol": "io.choria.ccm.v1.resource.ensure.request", "type": "setting", "properties": {"name": "/x", "url": "y"}}`:   false,
		},
	} {
		schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(all[name]))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource(name, schema); err != nil {
			t.Fatal(err)
		}
		compiled, err := c.Compile(name)
		if err != nil {
			t.Fatal(err)
		}
		for text, valid := range documents {
			document, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
			if err != nil {
				t.Fatal(err)
			}
			if err := compiled.Validate(document); (err == nil) != valid {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}
