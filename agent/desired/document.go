package desired

import (
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// parse reads the value of an entry, whose signatures the gate judges. The problems
// never pass.
func parse(e model.Entry) (*Version, model.Problems) {
	if e.Refused != "" {
		return nil, model.Problems{{Pos: model.Position{File: e.Key, Line: 1, Column: 1}, Message: e.Refused}}
	}
	value, problems := document.DecodeAssigned(e.Key, e.Value)
	if problems != nil {
		return nil, problems
	}
	v := &Version{Entry: e, Assignment: value.Assignment, sum: model.DigestOf(e.Value), whenAt: value.WhenAt}
	v.Digest = v.ContentDigest()

	return v, nil
}
