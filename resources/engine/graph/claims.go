package graph

import (
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Claims are the resources that the manifests of a node declare, by reference.
type Claims map[model.Ref]*resource.Resource

// Conflicts returns the resources that another manifest declares differently. The
// same resource in both is one resource.
func (c Claims) Conflicts(resources []*resource.Resource) model.Problems {
	var out model.Problems
	for _, res := range resources {
		first, taken := c[res.Ref()]
		if !taken || res.Excluded != "" {
			continue
		}
		// What they refer to is not checked here.
		_, err := Build([]*resource.Resource{first, res}, func(model.Ref) bool { return true })
		out = append(out, model.AsProblems(err)...)
	}

	return out
}

// Add notes what a manifest declares.
func (c Claims) Add(resources []*resource.Resource) {
	for _, res := range resources {
		if _, taken := c[res.Ref()]; !taken && res.Excluded == "" {
			c[res.Ref()] = res
		}
	}
}
