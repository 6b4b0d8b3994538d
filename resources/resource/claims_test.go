package resource_test

import (
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

type claiming struct {
	model.Common
	claims []resource.Claim
}

func (*claiming) Validate() model.Problems { return nil }

// claimed returns a resource that claims "kind path" or "kind path#id".
func claimed(name, claim string) resource.Links {
	kind, path, _ := strings.Cut(claim, " ")
	path, id, _ := strings.Cut(path, "#")
	kinds := map[string]resource.ClaimKind{"whole": resource.ClaimWhole, "part": resource.ClaimPart, "attributes": resource.ClaimAttributes, "link": resource.ClaimLink, "absence": resource.ClaimAbsence}
	typ := &resource.Type{Info: resource.Info{Name: "t"}, Claims: func(s resource.Spec) []resource.Claim { return s.(*claiming).claims }}
	spec := &claiming{Common: model.Common{Name: name}, claims: []resource.Claim{{Kind: kinds[kind], Path: path, ID: id}}}

	return resource.LinksOf(&resource.Resource{Type: typ, Spec: spec, Pos: model.Position{File: "f", Line: len(name)}})
}

func TestClaims(t *testing.T) {
	t.Parallel()
	const both = "f:2: t#bb and t#a, at f:1, manage the same path"
	for name, c := range map[string]struct{ first, second, want string }{
		"two wholes":             {"whole /x", "whole /x", both + " (keep one of them)"},
		"whole and part":         {"whole /x", "part /x#1", both + " (add the part to the content, or declare the `file` without content)"},
		"part and whole":         {"part /x#1", "whole /x", both + " (add the part to the content, or declare the `file` without content)"},
		"two parts":              {"part /x#1", "part /x#2", ""},
		"the same part":          {"part /x#1", "part /x#1", "f:2: t#bb and t#a, at f:1, edit the same part of /x (keep one of them)"},
		"attributes and part":    {"attributes /x", "part /x#1", ""},
		"attributes and whole":   {"attributes /x", "whole /x", ""},
		"two attributes":         {"attributes /x", "attributes /x", ""},
		"link and attributes":    {"link /x", "attributes /x", both + " (keep one of them)"},
		"link and part":          {"part /x#1", "link /x", both + " (keep one of them)"},
		"link and whole":         {"link /x", "whole /x", both + " (keep one of them)"},
		"link and absence":       {"link /x", "absence /x", both + " (keep one of them)"},
		"absence and attributes": {"absence /x", "attributes /x", both + " (keep one of them)"},
		"absence and part":       {"absence /x", "part /x#1", both + " (keep one of them)"},
		"absence and whole":      {"whole /x", "absence /x", both + " (keep one of them)"},
		"two absences":           {"absence /x", "absence /x", ""},
		"two paths":              {"whole /x", "whole /y", ""},
		"the same part of paths": {"part /x#1", "part /y#1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := resource.CheckLinks([]resource.Links{claimed("a", c.first), claimed("bb", c.second)}, nil); got.Error() != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			excluded := claimed("a", c.first)
			excluded.Resource.Excluded = "control"
			if got := resource.CheckLinks([]resource.Links{excluded, claimed("bb", c.second)}, nil); len(got) > 0 {
				t.Errorf("beside an excluded resource: %s", got)
			}
		})
	}
}
