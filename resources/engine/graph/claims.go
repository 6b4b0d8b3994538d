package graph

import (
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Claims are the resources that the manifests of a node declare, by canonical reference.
type Claims map[model.Ref]Claim

// Claim is a resource of the manifest of a key.
type Claim struct {
	Key      string
	Resource *resource.Resource
}

// Conflicts reports the resources that another manifest declares differently. Identical resources
// in two manifests count as one.
func (c Claims) Conflicts(resources []*resource.Resource) model.Problems {
	var out model.Problems
	for _, res := range resources {
		first, taken := c[res.CanonicalRef()]
		if !taken || res.Excluded != "" || first.Resource.IsSame(res) {
			continue
		}
		out.Add(res.Pos, "change that manifest, or remove it with muster fleet rm "+first.Key, "%s is already declared differently by %s, which is active", res.Ref(), first.Key)
	}

	return out
}

// Add adds the resources of the manifest of a key.
func (c Claims) Add(key string, resources []*resource.Resource) {
	for _, res := range resources {
		ref := res.CanonicalRef()
		if _, taken := c[ref]; !taken && res.Excluded == "" {
			c[ref] = Claim{key, res}
		}
	}
}
