package resources_test

import (
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/manifest"
)

// TestClaims declares two resources for one path.
func TestClaims(t *testing.T) {
	t.Parallel()
	const attributes = "owner: root, group: root, mode: '0644'"
	resource := map[string]string{
		"content":       "file: [{/f: {content: x, " + attributes + "}}]",
		"source":        "file: [{/f: {source: /x, " + attributes + "}}]",
		"deferred":      "exec: [{e: {command: /bin/true}}], file: [{/f: {content: \"${ outputs('exec#e').stdout }\", " + attributes + "}}]",
		"deferred mode": "exec: [{e: {command: /bin/true}}], file: [{/f: {owner: root, group: root, mode: \"${ outputs('exec#e').stdout }\"}}]",
		"attributes":    "file: [{/f: {" + attributes + "}}]",
		"directory":     "file: [{/f: {ensure: directory, " + attributes + "}}]",
		"removal":       "file: [{/f: {ensure: absent}}]",
		"link":          "link: [{/f: {target: x}}]",
		"no link":       "link: [{/f: {ensure: absent}}]",
		"archive":       "archive: [{/f: {url: 'https://example.com/f.tgz', owner: root, group: root}}]",
		"unpacked":      "archive: [{/f: {url: 'https://example.com/f.tgz', owner: root, group: root, extract_parent: /d, creates: /d/x, cleanup: true}}]",
		"no archive":    "archive: [{/f: {ensure: absent}}]",
	}
	for pair, excluded := range map[[2]string]bool{
		{"content", "link"}: true, {"source", "link"}: true, {"removal", "link"}: true, {"content", "no link"}: true,
		{"attributes", "link"}: true, {"directory", "link"}: true, {"removal", "no link"}: false,
		{"deferred", "link"}: true, {"deferred", "archive"}: true, {"deferred mode", "archive"}: false,
		{"content", "archive"}: true, {"removal", "archive"}: true, {"link", "archive"}: true, {"attributes", "archive"}: false,
		{"removal", "unpacked"}: false, {"removal", "no archive"}: false, {"content", "no archive"}: false,
	} {
		doc, err := manifest.Parse("m.yaml", []byte("muster: {resources: [{"+resource[pair[0]]+"}, {"+resource[pair[1]]+"}]}"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = manifest.NewLoader(manifest.Options{Types: resources.All()}).Resolve(t.Context(), doc, manifest.Inputs{Dir: "/"})
		if got := err != nil && strings.Contains(err.Error(), " manage the same path "); got != excluded || err != nil && !got {
			t.Errorf("%s and %s: %v", pair[0], pair[1], err)
		}
	}
}
