package signed

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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

// dsse returns the envelope in the type of the library.
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
