package document

import (
	"bytes"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// Assigned is the decoded value of a key of assignments. Nodes and operators share this
// decoder, so operators see and sign what nodes run.
type Assigned struct {
	// Assignment contains the terms. A bare manifest has no terms.
	model.Assignment
	// Bare reports whether the value is a manifest without an assignment document.
	Bare bool
	// Content is the value, or the content of its envelope; nil for an invalid envelope.
	Content []byte
	// WhenAt is the position of the condition.
	WhenAt model.Position
}

// DecodeAssigned decodes the value of a key: a bare manifest or an assignment document. Either may
// be in an envelope. It does not verify signatures. Nodes reject a value with problems permanently.
// With problems, only Content is set.
func DecodeAssigned(key string, value []byte) (Assigned, model.Problems) {
	content, err := signed.Content(value)
	if err != nil {
		return Assigned{}, model.ProblemAt(model.Position{File: key}, "push it again", "%v", err)
	}

	return DecodeAssignedContent(key, content)
}

// DecodeAssignedContent is DecodeAssigned for the content of an envelope, which must not hold another envelope.
func DecodeAssignedContent(key string, content []byte) (Assigned, model.Problems) {
	protocol, problems := protocolOf(key, content)
	switch {
	case problems != nil:
		return Assigned{Content: content}, problems
	case protocol == "":
		return Assigned{Assignment: model.Assignment{Manifest: string(content)}, Bare: true, Content: content}, nil
	}
	out := Assigned{Content: content}
	places, problems := DecodeInto(key, content, MaxBytes, &out.Assignment)
	_, name, _ := model.SplitKey(key)
	for _, p := range out.Validate(name) {
		if p.Pos = places[p.Property]; p.Pos.IsZero() {
			p.Pos = model.Position{File: key, Line: 1, Column: 1}
		}
		problems = append(problems, p)
	}
	if len(problems) > 0 {
		return Assigned{Content: content}, problems.Sorted()
	}
	out.WhenAt = places["when"]

	return out, nil
}

// AssignedDigest returns the digest that nodes report for the value of a key: the digest of the
// manifest or the bundle, or of the whole content if nodes reject it.
func AssignedDigest(key string, value []byte) string {
	digest, _ := AssignedSummary(key, value)

	return digest
}

// AssignedSummary returns the AssignedDigest and the terms of the value of a key. The terms are nil
// if there are none. A rejected value has no terms but its signature.
func AssignedSummary(key string, value []byte) (digest string, terms *model.Terms) {
	v, problems := DecodeAssigned(key, value)
	terms = v.Terms(signed.IsEnvelope(value))
	switch {
	case problems == nil:
		return v.ContentDigest(), terms
	case v.Content != nil:
		return model.DigestOf(v.Content), terms
	default:
		return model.DigestOf(value), terms
	}
}

// protocolOf returns the protocol of a document, or an empty text for a bare manifest. It reads
// only the top-level keys and ignores other problems.
func protocolOf(key string, value []byte) (string, model.Problems) {
	if !bytes.Contains(value, []byte("protocol")) && !bytes.Contains(value, []byte("payload")) {
		return "", nil
	}
	root, problems := Read(key, value, MaxBytes)
	if problems != nil {
		// manifest.Parse reports it with hints.
		return "", nil
	}
	_, typed := root.Get("payloadType")
	_, payload := root.Get("payload")
	_, signatures := root.Get("signatures")
	if typed || payload && signatures {
		return "", model.ProblemAt(root.Pos, "push it again", "a signed envelope must be JSON, without another envelope inside")
	}
	protocol, has := root.Get("protocol")
	if has && protocol.Text != model.ProtocolAssignment {
		return "", model.ProblemAt(protocol.Pos, "it must be "+model.ProtocolAssignment, "the protocol %q is not known", protocol.Text)
	}

	return protocol.Text, nil
}
