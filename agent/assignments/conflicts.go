package assignments

import (
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/resource"
)

// claims are the resources that the manifests of the node declare, by reference.
type claims map[model.Ref]*resource.Resource

// conflicts returns the resources that another manifest declares differently. The
// same resource in both is one resource.
func (c claims) conflicts(resources []*resource.Resource) model.Problems {
	var out model.Problems
	for _, res := range resources {
		first, taken := c[res.Ref()]
		if !taken || res.Excluded != "" {
			continue
		}
		// The engine knows what makes two declarations the same; what they refer
		// to is not asked here.
		_, err := graph.Build([]*resource.Resource{first, res}, func(model.Ref) bool { return true })
		out = append(out, model.AsProblems(err)...)
	}

	return out
}

// add notes what a manifest declares.
func (c claims) add(resources []*resource.Resource) {
	for _, res := range resources {
		if _, taken := c[res.Ref()]; !taken && res.Excluded == "" {
			c[res.Ref()] = res
		}
	}
}
