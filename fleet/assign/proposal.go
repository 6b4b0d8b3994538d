package assign

import (
	"context"
	"fmt"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// Proposal is the statement to sign for a revision. Users see only data from this statement.
type Proposal struct {
	// Statement is the statement to sign. Issued is zero for a new statement and is set at signing.
	Statement signed.Statement
	// By are the keys that have already signed it.
	By []signed.Key

	envelope *signed.Envelope // nil for a new statement
	current  []byte
}

// Propose returns the statement to sign for the newest revision of a key: the existing envelope if one of the
// keys has signed it, otherwise a new statement with its content. Any writer can change the bucket, so
// Propose accepts no other key or action than shown, and no time of another author beyond the times of a new
// signature.
func (s *Signing) Propose(ctx context.Context, e model.Entry, renew bool) (Proposal, error) {
	action, content, err := signed.Revision(e)
	if err != nil {
		return Proposal{}, err
	}
	asNew := Proposal{
		Statement: signed.Statement{Fleet: s.Fleet, Action: action, Target: e.Key, Content: string(content), Expires: s.Now().Add(s.Valid).UTC()},
		current:   e.Value,
	}
	if renew || !signed.IsEnvelope(e.Value) {
		return asNew, nil
	}
	envelope, err := signed.Open(e.Value)
	if err != nil {
		return Proposal{}, err
	}
	p := Proposal{Statement: envelope.Statement, By: envelope.Signers(ctx), envelope: envelope}
	if err := p.Statement.For(s.Fleet, action, e.Key); err != nil {
		return Proposal{}, err
	}
	if len(p.By) == 0 {
		return asNew, nil
	}

	return p, s.checkTimes(p)
}

// IsSigned reports whether all keys have signed a proposal.
func (s *Signing) IsSigned(p Proposal) bool {
	return p.envelope != nil && !slices.ContainsFunc(s.Keys, func(k *KeyFile) bool { return !slices.Contains(p.By, k.Key()) })
}

// checkTimes returns an error for times that a new signature would not have, unless one of the keys has
// signed them.
func (s *Signing) checkTimes(p Proposal) error {
	const remedy = "(sign it as new: --renew)"
	now := s.Now()
	last, err := s.lastOf(p.Statement.Target)
	if err != nil {
		return err
	}
	if err := p.envelope.Fresh(now, signed.Mark{Issued: last, Sum: p.envelope.Sum}); err != nil {
		return fmt.Errorf("%w %s", err, remedy)
	}
	if slices.ContainsFunc(s.Keys, func(k *KeyFile) bool { return slices.Contains(p.By, k.Key()) }) {
		return nil
	}
	// The clocks of two operators may differ.
	latest := now.Add(signed.MaxSkew / 2)
	switch {
	case p.Statement.Issued.After(latest):
		return fmt.Errorf("%w %s", signed.ErrFuture, remedy)
	case p.Statement.Expires.After(latest.Add(s.Valid)):
		return fmt.Errorf("it is valid for longer than --sign-expires, %s: give a longer one, or sign it as new (--renew)", s.Valid)
	default:
		return nil
	}
}

// Sign returns the signed value of a proposal.
func (s *Signing) Sign(ctx context.Context, p Proposal) ([]byte, error) {
	if p.envelope == nil {
		return s.sign(ctx, p.Statement, p.current)
	}
	unlock, err := s.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	// Another process may have signed since the proposal.
	if err := s.checkTimes(p); err != nil {
		return nil, err
	}
	if err := s.remember(ctx, p.Statement); err != nil {
		return nil, err
	}

	return p.envelope.Add(ctx, s.signers()...)
}
