package assignments

import (
	"bytes"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/document/decode"
	"github.com/musterfleet/muster/resources/manifest"
)

// parse reads the value of an entry: a bare manifest, or the document around
// one, either of them in an envelope, whose signatures the gate judges. The problems
// never pass.
func parse(e model.Entry) (*Version, model.Problems) {
	if e.Refused != "" {
		return nil, model.Problems{{Pos: model.Position{File: e.Key, Line: 1, Column: 1}, Message: e.Refused}}
	}
	v := &Version{Entry: e, sum: model.DigestOf(e.Value)}
	content, err := signed.Content(e.Value)
	if err != nil {
		return nil, model.ProblemAt(model.Position{File: e.Key}, "push it again", "%v", err)
	}
	switch kind, problems := kindOf(e.Key, content); {
	case problems != nil:
		return nil, problems
	case kind == "":
		v.Manifest, v.Digest = string(content), model.DigestOf(content)
		return v, nil
	}
	places, problems := decode.Document(e.Key, content, manifest.DefaultMaxBytes, &v.Assignment)
	_, name, _ := model.SplitKey(e.Key)
	for _, p := range v.Validate(name) {
		if p.Pos = places[p.Property]; p.Pos.IsZero() {
			p.Pos = model.Position{File: e.Key, Line: 1, Column: 1}
		}
		problems = append(problems, p)
	}
	v.whenAt = places["when"]
	if len(problems) > 0 {
		return nil, problems.Sorted()
	}
	v.Digest = v.ContentDigest()

	return v, nil
}

// kindOf returns the protocol of a value, empty for a bare manifest. It looks at
// the keys at the top only: what else is wrong is found by who reads it.
func kindOf(key string, value []byte) (string, model.Problems) {
	if !bytes.Contains(value, []byte("protocol")) && !bytes.Contains(value, []byte("payload")) {
		return "", nil
	}
	root, problems := document.Read(key, value, manifest.DefaultMaxBytes)
	if problems != nil {
		// manifest.Parse reports it with hints.
		return "", nil
	}
	_, typed := root.Get("payloadType")
	_, payload := root.Get("payload")
	_, signed := root.Get("signatures")
	if typed || payload && signed {
		return "", model.ProblemAt(root.Pos, "push it again", "a signed envelope is JSON, and has no other within")
	}
	protocol, has := root.Get("protocol")
	if has && protocol.Text != model.ProtocolAssignment {
		return "", model.ProblemAt(protocol.Pos, "it must be "+model.ProtocolAssignment, "the protocol %q is not known", protocol.Text)
	}

	return protocol.Text, nil
}
