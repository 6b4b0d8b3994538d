package document

import (
	"bytes"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// Assigned is the decoded value of a key of assignments. Nodes and operators share this
// decoder, so operators see and sign what nodes run.
type Assigned struct {
	// Assignment has the terms. Of a bare manifest it has the manifest alone.
	model.Assignment
	// Bare reports whether there is no document around the manifest.
	Bare bool
	// Content is the value, or what the envelope around it holds; nil for a broken one.
	Content []byte
	// WhenAt is where the condition is.
	WhenAt model.Position
}

// DecodeAssigned decodes the value of a key: a bare manifest, or the document around one,
// either of them in an envelope, whose signatures it does not judge. Nodes reject a value
// with problems, which never pass; of such a one no more than Content is returned.
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

// AssignedDigest returns the digest that nodes report for the value of a key: of the manifest or
// the bundle, or of all that it holds where they reject it.
func AssignedDigest(key string, value []byte) string {
	digest, _ := AssignedSummary(key, value)

	return digest
}

// AssignedSummary returns the AssignedDigest of the value of a key, and its terms: nil for none, and but for a signature where nodes
// reject it.
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

// protocolOf returns the protocol of a document, empty for a bare manifest. It looks at
// the keys at the top only: what else is wrong is found by who reads it.
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
		return "", model.ProblemAt(root.Pos, "push it again", "a signed envelope is JSON, and has no other within")
	}
	protocol, has := root.Get("protocol")
	if has && protocol.Text != model.ProtocolAssignment {
		return "", model.ProblemAt(protocol.Pos, "it must be "+model.ProtocolAssignment, "the protocol %q is not known", protocol.Text)
	}

	return protocol.Text, nil
}
