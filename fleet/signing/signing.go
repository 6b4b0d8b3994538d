// Package signing is the operator's side of signatures: key files, and statements
// about what is assigned, removed and requested.
package signing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"syscall"
	"time"

	"github.com/musterfleet/muster/model/signed"
)

// Signing signs for one fleet with some keys.
type Signing struct {
	// Fleet is its prefix.
	Fleet string
	Keys  []*KeyFile
	// Valid is how long nodes accept what is signed.
	Valid time.Duration
	Log   *slog.Logger
	// Now returns the time.
	Now func() time.Time
}

// Assignment returns the signed value of a key; current is what is assigned, nil for
// nothing.
func (s *Signing) Assignment(ctx context.Context, key string, content, current []byte) ([]byte, error) {
	return s.sign(ctx, signed.Statement{Action: signed.Assign, Target: key, Content: string(content)}, current)
}

// Removal returns the proof that a key was removed; current is what is assigned, nil
// for nothing.
func (s *Signing) Removal(ctx context.Context, key string, current []byte) ([]byte, error) {
	return s.sign(ctx, signed.Statement{Action: signed.Remove, Target: key}, current)
}

// Request returns an ensure request to a family, signed until it expires.
func (s *Signing) Request(ctx context.Context, family string, request []byte, expires time.Time) ([]byte, error) {
	if expires.After(s.Now().Add(signed.MaxRequest)) {
		return nil, fmt.Errorf("a signed request is valid for at most %s", signed.MaxRequest)
	}

	return s.sign(ctx, signed.Statement{Action: signed.Ensure, Target: family, Content: string(request), Expires: expires}, nil)
}

// HasSigned reports whether a value is signed for a key by all keys, and is accepted
// for half of the time that a new signature would be.
func (s *Signing) HasSigned(ctx context.Context, key string, value []byte) bool {
	e, err := signed.Open(value)

	return err == nil && s.check(ctx, e, key, len(s.Keys)) == nil && e.Statement.Action == signed.Assign && e.Statement.Expires.Sub(s.Now()) > s.Valid/2
}

// Add returns a signed value of a key with the signatures of further keys. It signs
// nothing that was signed for something else: what the bucket holds is anybody's who
// may write there.
func (s *Signing) Add(ctx context.Context, key string, value []byte) ([]byte, error) {
	e, err := signed.Open(value)
	if err != nil {
		return nil, err
	}
	if err := s.check(ctx, e, key, 0); err != nil {
		return nil, err
	}
	if err := e.Fresh(s.Now(), signed.Mark{}); err != nil {
		return nil, fmt.Errorf("%w (sign it as new: --renew)", err)
	}

	return e.Add(ctx, s.signers()...)
}

// check reports whether an envelope is for a key of the fleet, signed by so many of
// the keys.
func (s *Signing) check(ctx context.Context, e *signed.Envelope, key string, threshold int) error {
	p := signed.Policy{Fleet: s.Fleet, Threshold: threshold}
	for _, k := range s.Keys {
		p.Keys = append(p.Keys, signed.Trusted{Key: k.Key()})
	}

	return p.Check(ctx, e, e.Statement.Action, key)
}

func (s *Signing) signers() []*signed.Signer {
	out := make([]*signed.Signer, len(s.Keys))
	for i, k := range s.Keys {
		out[i] = k.Signer
	}

	return out
}

// sign signs a statement with all keys, at a time later than each of them signed
// before, and than what it replaces.
func (s *Signing) sign(ctx context.Context, statement signed.Statement, current []byte) ([]byte, error) {
	for _, k := range s.Keys {
		unlock, err := k.lock()
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	issued, err := s.next(current)
	if err != nil {
		return nil, err
	}
	statement.Fleet, statement.Issued = s.Fleet, issued
	if statement.Expires.IsZero() {
		statement.Expires = issued.Add(s.Valid)
	}
	for _, k := range s.Keys {
		if err := s.remember(ctx, k, issued); err != nil {
			return nil, err
		}
	}

	return signed.Sign(ctx, statement, s.signers()...)
}

// next returns the time of the next signature. The keys are locked.
func (s *Signing) next(current []byte) (time.Time, error) {
	now := s.Now().UTC()
	next := now
	later := func(than time.Time) {
		if !next.After(than) {
			next = than.Add(1)
		}
	}
	for _, k := range s.Keys {
		before, err := k.readLast()
		if err != nil {
			return next, err
		}
		if before.After(now.Add(signed.MaxSkew)) {
			return next, fmt.Errorf("the clock is at %s, and %s signed at %s: set the clock, nodes accept no older signatures", now.Format(time.RFC3339), k.Path, before.UTC().Format(time.RFC3339))
		}
		later(before)
	}
	// Another operator's clock may be ahead. One that is far ahead is no operator's.
	if e, err := signed.Open(current); err == nil && e.Statement.Issued.Before(now.Add(signed.MaxSkew/2)) {
		later(e.Statement.Issued.UTC())
	}

	return next, nil
}

// remember keeps when a key signed. Where it is mounted read-only, the clock alone
// makes sure that it never signs earlier.
func (s *Signing) remember(ctx context.Context, k *KeyFile, at time.Time) error {
	err := k.writeLast(ctx, at)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		s.Log.Warn("cannot store when the key signed last, nodes reject what it signs after its clock was set back", "file", k.last, "error", err)
		return nil
	}

	return err
}
