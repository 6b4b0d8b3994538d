package build_test

import (
	"testing"

	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/testing/note"
)

// TestATypeThatIsAdded checks that a new type in the list is in the schemas.
func TestATypeThatIsAdded(t *testing.T) {
	types := append(resources.All(), note.New(note.Plain{}))
	for name, documents := range map[string]map[string]bool{
		"manifest": {
			`{"muster": {"resources": [{"note": [{"/etc/hostname": {"value": "web01"}}]}]}}`:       true,
			`{"muster": {"resources": [{"note": {"name": "/etc/hostname", "ensure": "absent"}}]}}`: true,
			`{"muster": {"resources": [{"note": [{"/etc/hostname": {"valeu": "web01"}}]}]}}`:       false,
			`{"muster": {"resources": [{"note": [{"/etc/hostname": {"ensure": "there"}}]}]}}`:      false,
		},
		"ensure_request": {
			`{"protocol": "io.choria.ccm.v1.resource.ensure.request", "type": "note", "properties": {"name": "/x", "value": "y"}}`: true,
			`{"protocol": "io.choria.ccm.v1.resource.ensure.request", "type": "note", "properties": {"name": "/x", "url": "y"}}`:   false,
		},
	} {
		schema := compile(t, name, types)
		for text, valid := range documents {
			if err := schema.Validate(decoded(t, text)); (err == nil) != valid {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}
