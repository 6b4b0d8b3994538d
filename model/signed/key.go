package signed

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/nats-io/nkeys"
)

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
