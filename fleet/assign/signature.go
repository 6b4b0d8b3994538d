package assign

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// String describes the action, validity and signers of the proposal.
func (p Proposal) String() string {
	issued, by := "now", "no key yet"
	if !p.Statement.Issued.IsZero() {
		issued = localTime(p.Statement.Issued)
	}
	if len(p.By) > 0 {
		by = shortKeys(p.By)
	}

	return fmt.Sprintf("%s %s, fleet %s, issued %s, valid until %s, signed by %s", p.Statement.Action, p.Statement.Target, p.Statement.Fleet, issued, localTime(p.Statement.Expires), by)
}

func localTime(t time.Time) string { return t.Local().Format(model.TimeFormat) }

// Signature lists the signers of a revision and the validity of the signature. After Expires only nodes that
// already have the revision accept it.
type Signature struct {
	// Signers are the public keys of the valid signatures. Whether a node trusts a key depends on its
	// configuration.
	Signers []signed.Key `json:"signers"`
	Target  string       `json:"target"`
	Issued  time.Time    `json:"issued"`
	Expires time.Time    `json:"expires"`
	// Wrong is why the signature does not apply to this revision.
	Wrong string `json:"wrong,omitempty"`
}

// SignatureOf returns the signature of a revision in a fleet, nil for an unsigned revision.
func SignatureOf(ctx context.Context, prefix string, revision model.Entry) *Signature {
	e, err := signed.Open(revision.Value)
	if err != nil {
		return nil
	}
	action := signed.Assign
	if revision.Deleted {
		action = signed.Remove
	}
	out := &Signature{Signers: e.Signers(ctx), Target: e.Statement.Target, Issued: e.Statement.Issued, Expires: e.Statement.Expires}
	if err := e.Statement.For(prefix, action, revision.Key); err != nil {
		out.Wrong = err.Error()
	}

	return out
}

// Short lists the signers, and the problem if any.
func (s *Signature) Short() string {
	if s == nil {
		return "-"
	}
	text := "no valid signature"
	if len(s.Signers) > 0 {
		text = shortKeys(s.Signers)
	}
	if s.Wrong != "" {
		text += " (" + s.Wrong + ")"
	}

	return text
}

// shortKeys lists keys in short form.
func shortKeys(keys []signed.Key) string {
	short := make([]string, len(keys))
	for i, k := range keys {
		short[i] = k.Short()
	}

	return strings.Join(short, ", ")
}

// String describes the signature as the end of a line.
func (s *Signature) String() string {
	if s == nil {
		return ""
	}
	text := ", with no valid signature"
	if len(s.Signers) > 0 {
		text = ", signed by " + shortKeys(s.Signers) + " until " + localTime(s.Expires)
	}
	if s.Wrong != "" {
		text += ", but " + model.SafeText(s.Wrong)
	}

	return text
}
