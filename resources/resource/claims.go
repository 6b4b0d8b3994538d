package resource

import (
	"path/filepath"
	"reflect"
	"slices"

	"github.com/musterfleet/muster/model"
)

// ClaimKind is what a resource manages at a path.
type ClaimKind uint8

// The kinds of claims.
const (
	// ClaimAttributes is the owner and mode of a file or directory, which may go together with its content.
	ClaimAttributes ClaimKind = iota
	// ClaimPart is a part of the content, ClaimWhole all of it.
	ClaimPart
	ClaimWhole
	// ClaimLink is a link, which has no content. ClaimAbsence is an absent path.
	ClaimLink
	ClaimAbsence
)

// Claim is what a resource manages at a path. Two resources must not claim the same part, or a part and
// its whole. A link and an absence exclude every other claim.
type Claim struct {
	Kind ClaimKind
	Path string
	// ID identifies a part in its file.
	ID string
}

// excludes reports whether two resources must not make these claims of one path.
func (c Claim) excludes(other Claim) bool {
	switch a, b := min(c.Kind, other.Kind), max(c.Kind, other.Kind); {
	case a == ClaimPart && b == ClaimPart:
		return c.ID == other.ID
	case a == ClaimAbsence:
		return false
	default:
		return a != ClaimAttributes || b >= ClaimLink
	}
}

// ClaimsOf returns the claims of a resource. An excluded resource has none. A deferred text counts as set; a
// path that is deferred claims nothing.
func ClaimsOf(r *Resource) []Claim {
	if r == nil || r.Excluded != "" || r.Type.Claims == nil {
		return nil
	}
	spec := r.Spec
	if len(r.Waiting) > 0 {
		spec = copied(spec)
		for _, key := range r.Waiting {
			if p, known := r.Type.Property(key); known {
				fill(p.Of(spec))
			}
		}
	}

	claims := slices.DeleteFunc(r.Type.Claims(spec), func(c Claim) bool { return !filepath.IsAbs(c.Path) })
	for i := range claims {
		if len(r.Waiting) > 0 && claims[i].Kind == ClaimPart {
			claims[i].ID = r.Ref().String() // it is unknown which part it is
		}
	}

	return claims
}

// fill sets a text that is not set.
func fill(v reflect.Value) {
	const deferred = "deferred"
	switch {
	case v.Kind() == reflect.String && v.String() == "":
		v.SetString(deferred)
	case v.Kind() == reflect.Pointer && v.IsNil() && v.Type().Elem().Kind() == reflect.String:
		v.Set(reflect.New(v.Type().Elem()))
	}
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

// Conflict returns the first other resource that must not be declared beside r, with what both do and the hint
// for the problem; nil for none. It ignores resources of the same name, which may not be declared twice anyway.
func (p PathClaims) Conflict(r *Resource) (other *Resource, what, hint string) {
	for _, c := range ClaimsOf(r) {
		for _, first := range p[c.Path] {
			if first.claim.excludes(c) && first.resource.CanonicalRef() != r.CanonicalRef() {
				what, hint = describe(first.claim, c)
				return first.resource, what, hint
			}
		}
	}

	return nil, "", ""
}

// describe returns what two resources with these claims do, and the hint.
func describe(a, b Claim) (what, hint string) {
	what, hint = "manage the same path", "keep one of them"
	switch {
	case a.Kind == ClaimPart && b.Kind == ClaimPart:
		what = "edit the same part of " + a.Path
	case a.Kind != b.Kind && max(a.Kind, b.Kind) < ClaimLink:
		hint = "add the part to the content, or declare the `file` without content"
	}

	return what, hint
}

// problem reports a resource with a claim that another resource excludes.
func (p PathClaims) problem(out *model.Problems, r *Resource) {
	if other, what, hint := p.Conflict(r); other != nil {
		out.Add(r.Pos, hint, "%s and %s, at %s, %s", r.Ref(), other.Ref(), other.Pos, what)
	}
}
