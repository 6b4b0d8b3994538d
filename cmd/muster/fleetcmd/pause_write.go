package fleetcmd

import (
	"context"
	"errors"

	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// Pauses writes pauses, signed where Signer is not nil.
type Pauses struct {
	Bucket kvstore.Control
	Signer *assign.Signing
}

// PauseResult is what was written under a key.
type PauseResult struct {
	Key      string `json:"key"`
	Revision uint64 `json:"revision"`
	// Unsigned is that it is not signed, unlike what it replaces.
	Unsigned bool `json:"-"`
	// Sent is that it was sent: with an error it may have been written all the same, without nothing was.
	Sent bool `json:"-"`
}

// Begin pauses a family.
func (p Pauses) Begin(ctx context.Context, family string, pause model.Pause) (PauseResult, error) {
	out := PauseResult{Key: model.Key(family, model.ControlPause)}
	value, err := model.EncodeJSON(pause)
	if err != nil {
		return out, err
	}
	current, err := p.Bucket.Get(ctx, out.Key)
	if err != nil && !errors.Is(err, model.ErrNotFound) && !errors.Is(err, model.ErrUnusable) {
		return out, err
	}
	out.Unsigned = p.Signer == nil && signed.IsEnvelope(current.Value)
	if p.Signer != nil {
		if value, err = p.Signer.Pause(ctx, family, value, current.Value); err != nil {
			return out, err
		}
	}
	out.Sent = true
	out.Revision, err = p.Bucket.Put(ctx, out.Key, value)

	return out, err
}

// End ends the pause of a family. The error wraps model.ErrNotFound where the bucket has none, unless
// the key is from, the one that a node says it is paused by.
func (p Pauses) End(ctx context.Context, family, from string) (PauseResult, error) {
	out := PauseResult{Key: model.Key(family, model.ControlPause)}
	current, err := p.Bucket.Get(ctx, out.Key)
	if errors.Is(err, model.ErrNotFound) {
		// A server that lags does not know the pause yet.
		current, err = p.Bucket.Current(ctx, out.Key)
	}
	if err != nil && !errors.Is(err, model.ErrUnusable) && !(errors.Is(err, model.ErrNotFound) && from == out.Key) {
		return out, err
	}
	out.Unsigned = p.Signer == nil && signed.IsEnvelope(current.Value)
	var proof []byte
	if p.Signer != nil {
		if proof, err = p.Signer.Resume(ctx, family, current.Value); err != nil {
			return out, err
		}
	}
	out.Sent = true
	out.Revision, err = p.Bucket.Delete(ctx, out.Key, proof)

	return out, err
}
