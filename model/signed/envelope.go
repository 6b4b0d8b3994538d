// Package signed defines what operators sign and how a node verifies it: statements in DSSE envelopes, keys,
// and the policy of a node. It is pure: keys, policy, earlier envelopes and the time are arguments.
package signed

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nkeys"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/musterfleet/muster/model"
)

// PayloadType is the payload type of envelopes with a statement.
const PayloadType = "application/vnd.muster.statement+json"

// Limits of an envelope. The largest content is a manifest of 16 MiB, escaped as a JSON string and encoded in
// base64.
const (
	MaxBytes      = 48 << 20
	MaxSignatures = 16
)

// maxSignature limits the bytes of one signature in an envelope, including the key id.
const maxSignature = 512

// ErrMalformed means that a value is not a valid envelope of a statement.
var ErrMalformed = errors.New("broken signed envelope")

// Envelope is a statement with unverified signatures.
type Envelope struct {
	Statement Statement
	// Sum is the digest of the signed bytes.
	Sum string

	payload    []byte
	signatures []dsse.Signature
}

// IsEnvelope reports whether a value is an envelope, valid or not: a JSON object whose first field is a field
// of envelopes. No manifest begins with such a field.
func IsEnvelope(value []byte) bool {
	if !bytes.HasPrefix(bytes.TrimLeft(value, " \t\r\n"), []byte("{")) {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(value))
	if _, err := d.Token(); err != nil {
		return false
	}
	first, err := d.Token()

	return err == nil && slices.Contains([]any{"payloadType", "payload", "signatures"}, any(first))
}

// Open decodes an envelope and its statement without verifying them. The error wraps ErrMalformed.
func Open(value []byte) (*Envelope, error) {
	if len(value) > MaxBytes {
		return nil, fmt.Errorf("%w: it has %d bytes, at most %d are read", ErrMalformed, len(value), MaxBytes)
	}
	// The size of the signatures is checked before they are decoded.
	var outer struct {
		PayloadType string          `json:"payloadType"`
		Payload     string          `json:"payload"`
		Signatures  json.RawMessage `json:"signatures"`
	}
	if err := model.DecodeStrict(value, &outer); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if outer.PayloadType != PayloadType {
		return nil, fmt.Errorf("%w: its payloadType is %q, it must be %s", ErrMalformed, bound(outer.PayloadType), PayloadType)
	}
	e := &Envelope{}
	if len(outer.Signatures) > MaxSignatures*maxSignature {
		return nil, fmt.Errorf("%w: its signatures have %d bytes, at most %d are read", ErrMalformed, len(outer.Signatures), MaxSignatures*maxSignature)
	}
	if len(outer.Signatures) > 0 {
		if err := model.DecodeStrict(outer.Signatures, &e.signatures); err != nil {
			return nil, fmt.Errorf("%w: its signatures: %w", ErrMalformed, err)
		}
	}
	if len(e.signatures) > MaxSignatures {
		return nil, fmt.Errorf("%w: it has %d signatures, at most %d are read", ErrMalformed, len(e.signatures), MaxSignatures)
	}
	var err error
	if e.payload, err = (&dsse.Envelope{Payload: outer.Payload}).DecodeB64Payload(); err != nil {
		return nil, fmt.Errorf("%w: its payload is not base64", ErrMalformed)
	}
	e.Sum = model.DigestOf(e.payload)
	e.Statement, err = decodeStatement(e.payload)

	return e, err
}

func (e *Envelope) dsse() *dsse.Envelope {
	return &dsse.Envelope{PayloadType: PayloadType, Payload: base64.StdEncoding.EncodeToString(e.payload), Signatures: e.signatures}
}

// Content returns the content of an envelope without verifying it, and any other value unchanged. The error
// wraps ErrMalformed.
func Content(value []byte) ([]byte, error) {
	if !IsEnvelope(value) {
		return value, nil
	}
	e, err := Open(value)
	if err != nil {
		return nil, err
	}

	return []byte(e.Statement.Content), nil
}

// Revision returns the action and the unverified content of a revision. A removal has no content. The error
// is the reason why nodes reject it. It wraps ErrElsewhere for an envelope with another action, or
// ErrMalformed.
func Revision(e model.Entry) (Action, []byte, error) {
	action, content := Assign, e.Value
	if e.Deleted {
		action, content = Remove, nil
	}
	if e.Refused != "" {
		return action, nil, fmt.Errorf("revision %d cannot be used: %s", e.Revision, e.Refused)
	}
	if !IsEnvelope(e.Value) {
		return action, content, nil
	}
	envelope, err := Open(e.Value)
	if err == nil && envelope.Statement.Action != action {
		err = fmt.Errorf("%w: to %s, not to %s", ErrElsewhere, envelope.Statement.Action, action)
	}
	if err != nil {
		return action, nil, fmt.Errorf("revision %d: %w", e.Revision, err)
	}

	return action, []byte(envelope.Statement.Content), nil
}

// Sign returns the envelope of a statement with a signature of each signer. It returns an error for an
// invalid statement.
func Sign(ctx context.Context, s Statement, signers ...*Signer) ([]byte, error) {
	s.Protocol = model.ProtocolStatement
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	payload, err := model.EncodeJSON(s)
	if err != nil {
		return nil, err
	}

	return (&Envelope{Statement: s, payload: payload}).Add(ctx, signers...)
}

// Add returns the envelope with the signatures of further signers. Existing signatures are not repeated.
func (e *Envelope) Add(ctx context.Context, signers ...*Signer) ([]byte, error) {
	providers := make([]dsse.Signer, len(signers))
	for i, s := range signers {
		providers[i] = s
	}
	by, err := dsse.NewEnvelopeSigner(providers...)
	if err != nil {
		return nil, err
	}
	signed, err := by.SignPayload(ctx, PayloadType, e.payload)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	out := *e
	out.signatures = slices.Clone(e.signatures)
	for _, s := range signed.Signatures {
		out.signatures = append(slices.DeleteFunc(out.signatures, func(o dsse.Signature) bool { return o.KeyID == s.KeyID }), s)
	}
	if len(out.signatures) > MaxSignatures {
		return nil, fmt.Errorf("sign: an envelope has at most %d signatures", MaxSignatures)
	}

	return json.Marshal(out.dsse())
}

// Signers returns the distinct keys with valid signatures, trusted or not.
func (e *Envelope) Signers(ctx context.Context) []Key {
	var out []Key
	for _, s := range e.signatures {
		key, err := ParseKey(s.KeyID)
		if err == nil && !slices.Contains(out, key) && len(e.validOf(ctx, []Key{key})) > 0 {
			out = append(out, key)
		}
	}

	return out
}

// validOf returns the keys among keys that have signed.
func (e *Envelope) validOf(ctx context.Context, keys []Key) []Key {
	verifiers := make([]dsse.Verifier, len(keys))
	for i, k := range keys {
		verifiers[i] = verifier{k}
	}
	by, err := dsse.NewMultiEnvelopeVerifier(1, verifiers...)
	if err != nil {
		return nil // there is no key
	}
	accepted, err := by.Verify(ctx, e.dsse())
	if err != nil {
		return nil
	}
	out := make([]Key, len(accepted))
	for i, a := range accepted {
		out[i] = Key(a.KeyID)
	}

	return out
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

func isText(text string, raw []byte) bool {
	same, err := nkeys.Encode(nkeys.PrefixByteOperator, raw)

	return err == nil && string(same) == text
}

// Short returns the beginning of a key, for users.
func (k Key) Short() string { return string(k[:min(len(k), 12)]) }

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
