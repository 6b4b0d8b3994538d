package ask

import (
	"context"
	"errors"
	"fmt"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// controlDocument is the value of a control key.
type controlDocument interface{ Check() error }

// ControlBucket stores control documents. kvstore.Control implements it.
type ControlBucket interface {
	// Get returns a document. A server that lags may answer with an older revision.
	Get(ctx context.Context, key string) (model.Entry, error)
	// Current returns a document from the leader of the stream. For a deleted document it returns the revision and an error
	// that wraps model.ErrNotFound.
	Current(ctx context.Context, key string) (model.Entry, error)
	// Replace stores a value if revision is still the newest; otherwise the error wraps model.ErrControlChanged.
	Replace(ctx context.Context, key string, revision uint64, value []byte) (uint64, error)
	// Put stores a value, and Delete removes a document with a proof, which may be empty. Both return the revision.
	Put(ctx context.Context, key string, value []byte) (uint64, error)
	Delete(ctx context.Context, key string, proof []byte) (uint64, error)
}

// Updater reads, changes and replaces control documents.
type Updater[D controlDocument] struct {
	Bucket ControlBucket
	// Name is the last part of the keys.
	Name   string
	Decode func(value []byte) (D, error)
	// Change returns the new document. It receives the zero value if there is no document. If idle is true, the updater
	// writes nothing.
	Change func(before D) (now D, idle bool)
	// Sign signs the new value; current is the value that it replaces. Nil means unsigned.
	Sign func(family string, now D, value, current []byte) ([]byte, error)
}

// maxTries is how often an update starts again after another user changed the key.
const maxTries = 5

// Updated is an updated document. Revision 0 means that the key has no value.
type Updated[D controlDocument] struct {
	Key         string
	Revision    uint64
	Before, Now D
}

// Update replaces the document of a target. The error wraps model.ErrControlChanged if other users changed the key
// during each try.
func (u Updater[D]) Update(ctx context.Context, t fleet.Target) (out Updated[D], err error) {
	for range maxTries {
		if out, err = u.once(ctx, t); !errors.Is(err, model.ErrControlChanged) {
			break
		}
	}

	return out, err
}

func (u Updater[D]) once(ctx context.Context, t fleet.Target) (out Updated[D], err error) {
	out.Key = t.Key(u.Name)
	current, err := u.Bucket.Current(ctx, out.Key)
	switch {
	case err == nil:
		if out.Before, err = u.Decode(current.Value); err != nil {
			return out, fmt.Errorf("%s: %w (remove it: nats kv del)", out.Key, err)
		}
	case !errors.Is(err, model.ErrNotFound) && !errors.Is(err, model.ErrUnusable):
		return out, err
	}
	now, idle := u.Change(out.Before)
	if out.Now = now; idle {
		out.Revision = current.Revision
		return out, nil
	}
	if err := now.Check(); err != nil {
		return out, fmt.Errorf("%s: %w", out.Key, err)
	}
	value, err := model.EncodeJSON(now)
	if err == nil && u.Sign != nil {
		value, err = u.Sign(t.String(), now, value, current.Value)
	}
	if err == nil {
		out.Revision, err = u.Bucket.Replace(ctx, out.Key, current.Revision, value)
	}

	return out, err
}

// Pauses writes and removes pauses, signed unless Signer is nil.
type Pauses struct {
	Bucket ControlBucket
	Signer *assign.Signing
}

// PauseResult is a written or removed pause.
type PauseResult struct {
	Key      string
	Revision uint64
	// Unsigned is set if the new value is not signed, unlike the value before.
	Unsigned bool
	// Sent is set if the change was sent: with an error, it may have been written.
	Sent bool
}

// Write pauses a family, or ends its pause if pause is nil. The error of an end wraps model.ErrNotFound if the bucket has no
// pause, unless the key is from, the key that pauses a node by its state.
func (p Pauses) Write(ctx context.Context, family string, pause *model.Pause, from string) (PauseResult, error) {
	out, action, value := PauseResult{Key: model.Key(family, model.ControlPause)}, signed.Resume, []byte(nil)
	if pause != nil {
		var err error
		if value, err = model.EncodeJSON(pause); err != nil {
			return out, err
		}
		action = signed.Pause
	}
	current, err := p.Bucket.Get(ctx, out.Key)
	if pause == nil && errors.Is(err, model.ErrNotFound) {
		// A server that lags does not know the pause yet.
		current, err = p.Bucket.Current(ctx, out.Key)
	}
	isExpected := errors.Is(err, model.ErrNotFound) && (pause != nil || from == out.Key)
	if err != nil && !isExpected && !errors.Is(err, model.ErrUnusable) {
		return out, err
	}
	out.Unsigned = p.Signer == nil && signed.IsEnvelope(current.Value)
	if p.Signer != nil {
		if value, err = p.Signer.Sign(ctx, action, family, value, current.Value); err != nil {
			return out, err
		}
	}
	out.Sent = true
	if pause != nil {
		out.Revision, err = p.Bucket.Put(ctx, out.Key, value)
	} else {
		out.Revision, err = p.Bucket.Delete(ctx, out.Key, value)
	}

	return out, err
}
