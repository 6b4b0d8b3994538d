package signed

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/musterfleet/muster/model"
)

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
