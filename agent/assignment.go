package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest"
)

// assignment is an entry that was read: what is to be run, and how.
type assignment struct {
	entry model.Entry
	// sum tells values apart.
	sum string
	model.Assignment
	// digest is that of what runs: the manifest's text or the bundle.
	digest string
	// whenAt is where the condition stands.
	whenAt model.Position
}

// parseAssignment reads the value of an entry: a bare manifest, or the document
// around one. The problems never pass.
func parseAssignment(e model.Entry) (*assignment, model.Problems) {
	a := &assignment{entry: e, sum: model.DigestOf(e.Value)}
	switch kind, problems := kindOf(e); {
	case problems != nil:
		return nil, problems
	case kind == "":
		a.Manifest = string(e.Value)
		a.digest = a.sum
		return a, nil
	}
	places, problems := decode(e.Key, e.Value, &a.Assignment)
	for _, p := range a.validate() {
		if p.Pos = places[p.Property]; p.Pos.IsZero() {
			p.Pos = model.Position{File: e.Key, Line: 1, Column: 1}
		}
		problems = append(problems, p)
	}
	a.whenAt = places["when"]
	if len(problems) > 0 {
		return nil, problems.Sorted()
	}

	return a, nil
}

// kindOf gives the protocol of a value, empty for a bare manifest. It looks at
// the keys at the top only: what else is wrong is found by who reads it.
func kindOf(e model.Entry) (string, model.Problems) {
	if !bytes.Contains(e.Value, []byte("protocol")) && !bytes.Contains(e.Value, []byte("payload")) {
		return "", nil
	}
	root, problems := document.Read(e.Key, e.Value, manifest.DefaultMaxBytes)
	if problems != nil {
		// manifest.Parse says it better, with hints.
		return "", nil
	}
	_, typed := root.Get("payloadType")
	_, payload := root.Get("payload")
	_, signed := root.Get("signatures")
	if typed || payload && signed {
		return "", model.ProblemAt(root.Pos, "push it without a signature", "signed envelopes are not supported by this version")
	}
	protocol, has := root.Get("protocol")
	if has && protocol.Text != model.ProtocolAssignment {
		return "", model.ProblemAt(protocol.Pos, "it must be "+model.ProtocolAssignment, "the protocol %q is not known", protocol.Text)
	}

	return protocol.Text, nil
}

// decode fills target, a pointer to a struct, by its json tags. It gives the
// place of each value by its path (nats.servers) and all that is wrong.
func decode(name string, data []byte, target any) (map[string]model.Position, model.Problems) {
	root, problems := document.Read(name, data, manifest.DefaultMaxBytes)
	d := document.Decoder{Problems: problems, Places: map[string]model.Position{}}
	d.Document(root, target)

	return d.Places, d.Problems
}

// validate checks the document around a manifest.
func (a *assignment) validate() model.Problems {
	var out model.Problems
	_, name, _ := model.SplitKey(a.entry.Key)
	if a.Name != "" && a.Name != name {
		out.Property("name", "", "the name is %q, but the key is that of %q", a.Name, name)
	}
	if !slices.Contains([]model.Drift{"", model.DriftRepair, model.DriftReport, model.DriftIgnore}, a.Drift) {
		out.Property("drift", "one of repair, report, ignore", "`drift` cannot be %q", a.Drift)
	}
	if a.Interval != 0 && a.Interval.Std() < time.Second {
		out.Property("interval", "", "`interval` must be at least 1s, not %s", a.Interval)
	}
	switch {
	case (a.Manifest == "") == (a.Bundle == ""):
		out.Property("manifest", "", "an assignment has either a `manifest` or a `bundle`")
		return out
	case a.Bundle != "":
		a.digest = a.Bundle
		if !isDigest(a.Bundle) {
			out.Property("bundle", "write sha256- and 64 hexadecimal digits", "%q is no digest of a bundle", a.Bundle)
		}
	default:
		a.digest = model.DigestOf([]byte(a.Manifest))
	}
	if a.Digest != "" && a.Digest != a.digest {
		out.Property("digest", "push it again", "the digest does not fit: it says %s, what came is %s", a.Digest, a.digest)
	}

	return out
}

func isDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, model.DigestPrefix)
	_, err := hex.DecodeString(digits)

	return ok && err == nil && len(digits) == 2*sha256.Size
}

// expired says that the assignment does not hold any more.
func (a *assignment) expired(now time.Time) bool {
	return !a.Expires.IsZero() && !now.Before(a.Expires)
}
