package desired

import (
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// parse parses the value of an entry. The gate verifies its signatures. The problems are permanent.
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
