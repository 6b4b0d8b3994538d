package signed

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nkeys"

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

// signsFor reports whether a key may sign for a family.
func (t Trusted) signsFor(family string) bool {
	kind, _, _ := strings.Cut(family, ".")

	return len(t.Families) == 0 || slices.Contains(t.Families, family) || slices.Contains(t.Families, kind+".*")
}

// label returns the name of a key for users.
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

// ErrKey means that a text is not a signing or verification key.
var ErrKey = errors.New("not a signing key")

// Key is the public part of a signing key, an ed25519 nkey of the kind operator,
// O…. The nkey of a NATS user is refused: a server chooses what a user signs.
type Key string

// ParseKey returns a public key. The error wraps ErrKey.
func ParseKey(text string) (Key, error) {
	// A key has one canonical text. Otherwise one key could count twice.
	if raw, err := nkeys.Decode(nkeys.PrefixByteOperator, []byte(text)); err != nil || !isText(text, raw) {
		return "", fmt.Errorf("%w: %q, a public one begins with O and has 56 characters (muster trust key ls prints it)", ErrKey, bound(text))
	}

	return Key(text), nil
}

// isText reports whether a text is the canonical text of a key.
func isText(text string, raw []byte) bool {
	same, err := nkeys.Encode(nkeys.PrefixByteOperator, raw)

	return err == nil && string(same) == text
}

// Short returns the beginning of a key, for users.
func (k Key) Short() string { return string(k[:min(len(k), 12)]) }

// verifier verifies signatures of a key.
type verifier struct{ key Key }

// Verify reports whether the signature of data is valid for the key.
func (v verifier) Verify(_ context.Context, data, sig []byte) error {
	pair, err := nkeys.FromPublicKey(string(v.key))
	if err != nil {
		return err
	}

	return pair.Verify(data, sig)
}

// KeyID returns the public key.
func (v verifier) KeyID() (string, error) { return string(v.key), nil }

// Public returns the key in the type of the standard library.
func (v verifier) Public() crypto.PublicKey {
	raw, err := nkeys.Decode(nkeys.PrefixByteOperator, []byte(v.key))
	if err != nil {
		return nil
	}

	return ed25519.PublicKey(raw)
}

// Signer is a signing key.
type Signer struct {
	pair nkeys.KeyPair
	key  Key
}

// NewSigner returns the signer of a seed. The error wraps ErrKey.
func NewSigner(seed []byte) (*Signer, error) {
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		return nil, fmt.Errorf("%w: no seed found (create one with muster trust key new)", ErrKey)
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	if !nkeys.IsValidPublicOperatorKey(public) {
		return nil, fmt.Errorf("%w: the seed has the wrong kind; a signing seed begins with SO (create one with muster trust key new)", ErrKey)
	}

	return &Signer{pair, Key(public)}, nil
}

// NewSeed creates a key and returns its seed.
func NewSeed() ([]byte, error) {
	pair, err := nkeys.CreateOperator()
	if err != nil {
		return nil, err
	}

	return pair.Seed()
}

// Key returns the public part.
func (s *Signer) Key() Key { return s.key }

// KeyID returns the public part.
func (s *Signer) KeyID() (string, error) { return string(s.key), nil }

// Sign signs data.
func (s *Signer) Sign(_ context.Context, data []byte) ([]byte, error) { return s.pair.Sign(data) }
