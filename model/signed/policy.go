package signed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// Errors of a policy. The wrapping error has the reason.
var (
	// ErrUnsigned means that a value or request has no signature.
	ErrUnsigned = errors.New("not signed")
	// ErrSignatures means that an envelope has too few valid signatures of trusted keys.
	ErrSignatures = errors.New("not signed by enough trusted keys")
	// ErrElsewhere means that an envelope is for another fleet, key, target or action.
	ErrElsewhere = errors.New("signed for something else")
)

// Trusted is a key that a node trusts.
type Trusted struct {
	Key Key
	// Name is the name of the key's owner, for users.
	Name string
	// Families lists the targets that the key may sign for: group.web, node.web01, or node.* and group.* for
	// all nodes or groups. If it is empty, the key may sign for all.
	Families []string
}

func (t Trusted) signsFor(family string) bool {
	kind, _, _ := strings.Cut(family, ".")

	return len(t.Families) == 0 || slices.Contains(t.Families, family) || slices.Contains(t.Families, kind+".*")
}

func (t Trusted) label() string {
	if t.Name != "" {
		return t.Name
	}

	return t.Key.Short()
}

// Policy contains the signature requirements of a node. Without keys there are none.
type Policy struct {
	Fleet string
	Keys  []Trusted
	// Threshold is the required number of signatures.
	Threshold int
}

// On reports whether the policy requires signatures.
func (p Policy) On() bool { return len(p.Keys) > 0 }

// Signers returns the number of keys that may sign for a family.
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

// Check verifies the signatures and the target of an envelope. The error wraps ErrSignatures or ErrElsewhere
// and is permanent.
func (p Policy) Check(ctx context.Context, e *Envelope, action Action, targets ...string) error {
	family := e.Statement.Family()
	if valid := e.validOf(ctx, p.signers(family)); len(valid) < p.Threshold {
		return fmt.Errorf("%w: %d of %d needed for %s%s", ErrSignatures, len(valid), p.Threshold, family, p.explain(ctx, e, valid))
	}

	return e.Statement.For(p.Fleet, action, targets...)
}

// explain describes each signature of an envelope. Valid signatures come first.
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

// CheckFamily returns an error unless a key may be limited to the family. The error wraps
// model.ErrInvalidName.
func CheckFamily(text string) error {
	if text == "node.*" || text == "group.*" {
		return nil
	}

	return model.CheckFamily(text)
}

// Errors of the time of signing.
var (
	// ErrOlder means that the node already accepted an envelope that was signed later.
	ErrOlder = errors.New("older than an accepted signature")
	// ErrExpired means that the envelope expired.
	ErrExpired = errors.New("the signature expired")
	// ErrFuture means that the envelope was signed in the future. This error is temporary.
	ErrFuture = errors.New("signed in the future")
)

// MaxSkew is the largest accepted difference between the clocks of operators and nodes.
const MaxSkew = 5 * time.Minute

// MaxRequest limits the validity of an ensure request. Nodes remember executed requests for longer.
const MaxRequest = 24 * time.Hour

// Mark identifies the last accepted envelope of a target.
type Mark struct {
	Issued time.Time `json:"issued"`
	Sum    string    `json:"sum"`
}

// Fresh returns an error unless a node may accept an envelope at a time after the last accepted one. The same
// envelope may be accepted again. The error wraps ErrOlder, ErrExpired or ErrFuture.
func (e *Envelope) Fresh(now time.Time, last Mark) error {
	s := e.Statement
	switch {
	case s.Issued.After(now.Add(MaxSkew)):
		return fmt.Errorf("%w: at %s, here it is %s", ErrFuture, s.Issued.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case !now.Before(s.Expires):
		return fmt.Errorf("%w at %s, here it is %s", ErrExpired, s.Expires.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case s.Issued.Before(last.Issued), s.Issued.Equal(last.Issued) && e.Sum != last.Sum:
		return fmt.Errorf("%w: signed at %s, the accepted one at %s", ErrOlder, s.Issued.UTC().Format(time.RFC3339Nano), last.Issued.UTC().Format(time.RFC3339Nano))
	default:
		return nil
	}
}
