package signed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
)

// What a node refuses, each with its reason in the error around it.
var (
	// ErrUnsigned is a value or request without a signature.
	ErrUnsigned = errors.New("not signed")
	// ErrSignatures is an envelope with fewer valid signatures of trusted keys than
	// are needed.
	ErrSignatures = errors.New("not signed by enough trusted keys")
	// ErrElsewhere is an envelope for another fleet, key, target or action.
	ErrElsewhere = errors.New("signed for something else")
)

// Trusted is a key that a node trusts.
type Trusted struct {
	Key Key
	// Name is whose it is, for people.
	Name string
	// Families are those of the targets it may sign for: group.web, node.web01, or all
	// nodes or groups as node.* and group.*. None are all.
	Families []string
}

// signsFor reports whether a key may sign for a family.
func (t Trusted) signsFor(family string) bool {
	kind, _, _ := strings.Cut(family, ".")

	return len(t.Families) == 0 || slices.Contains(t.Families, family) || slices.Contains(t.Families, kind+".*")
}

// label names a key for people.
func (t Trusted) label() string {
	if t.Name != "" {
		return t.Name
	}

	return t.Key.Short()
}

// Policy is what a node demands. Without keys it demands nothing.
type Policy struct {
	Fleet string
	Keys  []Trusted
	// Threshold is how many keys must have signed.
	Threshold int
}

// On reports whether anything is demanded.
func (p Policy) On() bool { return len(p.Keys) > 0 }

// Signers returns how many keys may sign for a family.
func (p Policy) Signers(family string) int { return len(p.signers(family)) }

func (p Policy) signers(family string) []Key {
	var out []Key
	for _, t := range p.Keys {
		if t.signsFor(family) {
			out = append(out, t.Key)
		}
	}

	return out
}

// Check judges the signatures of an envelope and what it is signed for. The error
// wraps ErrSignatures or ErrElsewhere, and never passes by trying again.
func (p Policy) Check(ctx context.Context, e *Envelope, action Action, targets ...string) error {
	family := e.Statement.Family()
	if valid := e.validOf(ctx, p.signers(family)); len(valid) < p.Threshold {
		return fmt.Errorf("%w: %d of %d needed for %s%s", ErrSignatures, len(valid), p.Threshold, family, p.explain(ctx, e, valid))
	}

	return e.Statement.For(p.Fleet, action, targets...)
}

// explain describes each signature of an envelope, those that count first.
func (p Policy) explain(ctx context.Context, e *Envelope, valid []Key) string {
	var parts []string
	for _, k := range valid {
		parts = append(parts, "signed by "+p.label(k))
	}
	all := e.Signers(ctx)
	for _, s := range e.signatures {
		key, err := ParseKey(s.KeyID)
		switch {
		case err != nil:
			parts = append(parts, "a signature without a key of muster")
		case slices.Contains(valid, key):
		case !slices.Contains(all, key):
			parts = append(parts, "the signature of "+p.label(key)+" is not one of this content")
		case p.trusts(key):
			parts = append(parts, p.label(key)+" is not trusted for "+e.Statement.Family())
		default:
			parts = append(parts, p.label(key)+" is not a trusted key")
		}
	}
	if len(parts) == 0 {
		return ""
	}

	return ": " + strings.Join(slices.Compact(parts), ", ")
}

func (p Policy) trusts(key Key) bool {
	return slices.ContainsFunc(p.Keys, func(t Trusted) bool { return t.Key == key })
}

func (p Policy) label(key Key) string {
	if i := slices.IndexFunc(p.Keys, func(t Trusted) bool { return t.Key == key }); i >= 0 {
		return p.Keys[i].label()
	}

	return key.Short()
}

// CheckFamily reports whether a text is a family that a key may sign for. The error
// wraps model.ErrInvalidName.
func CheckFamily(text string) error {
	if text == "node.*" || text == "group.*" {
		return nil
	}

	return model.CheckFamily(text)
}
