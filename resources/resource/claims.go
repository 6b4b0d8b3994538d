package resource

import "github.com/musterfleet/muster/model"

// ClaimKind is what a resource manages at a path.
type ClaimKind uint8

// The kinds of claims. ClaimAttributes is owner and mode, which may go together with any other claim.
const (
	ClaimAttributes ClaimKind = iota
	ClaimPart
	ClaimWhole
)

// Claim is what a resource manages at a path. Two resources must not claim the same whole, a whole and one
// of its parts, or the same part.
type Claim struct {
	Kind ClaimKind
	Path string
	// ID identifies a part in its file.
	ID string
}

// excludes reports whether two resources must not make these claims of one path.
func (c Claim) excludes(other Claim) bool {
	switch {
	case c.Kind == ClaimAttributes || other.Kind == ClaimAttributes:
		return false
	case c.Kind == ClaimPart && other.Kind == ClaimPart:
		return c.ID == other.ID
	default:
		return true
	}
}

// ClaimsOf returns the claims of a resource. An excluded resource has none, and deferred properties claim
// nothing.
func ClaimsOf(r *Resource) []Claim {
	if r == nil || r.Excluded != "" || r.Type.Claims == nil {
		return nil
	}

	return r.Type.Claims(r.Spec)
}

// PathClaims are the claims of resources, by path.
type PathClaims map[string][]claimant

type claimant struct {
	claim    Claim
	resource *Resource
}

// Add adds the claims of a resource.
func (p PathClaims) Add(r *Resource) {
	for _, c := range ClaimsOf(r) {
		p[c.Path] = append(p[c.Path], claimant{c, r})
	}
}

// Conflict returns the first other resource that must not be declared beside r, and the hint for its problem;
// nil for none. It ignores resources of the same name, which may not be declared twice anyway.
func (p PathClaims) Conflict(r *Resource) (other *Resource, hint string) {
	for _, c := range ClaimsOf(r) {
		for _, first := range p[c.Path] {
			if first.claim.excludes(c) && first.resource.CanonicalRef() != r.CanonicalRef() {
				return first.resource, hintFor(first.claim.Kind, c.Kind)
			}
		}
	}

	return nil, ""
}

func hintFor(a, b ClaimKind) string {
	if a == b {
		return "keep one of them"
	}

	return "add the part to the content, or declare the `file` without content"
}

// problem adds the problem of a resource that claims what another one claims.
func (p PathClaims) problem(out *model.Problems, r *Resource) {
	if other, hint := p.Conflict(r); other != nil {
		out.Add(r.Pos, hint, "%s and %s, at %s, manage the same content", r.Ref(), other.Ref(), other.Pos)
	}
}
