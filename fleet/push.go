package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/musterfleet/muster/model"
)

// Assignments is where nodes read their assignments.
type Assignments interface {
	// Get returns the current assignment; the error wraps model.ErrNotFound when there is none.
	Get(ctx context.Context, key string) (model.Entry, error)
	// Put stores a value and returns its revision; the error wraps model.ErrTooLarge.
	Put(ctx context.Context, key string, value []byte) (uint64, error)
}

// Bundles is where bundles are kept.
type Bundles interface {
	// PutBundle stores a bundle, read from its beginning, under its digest, and
	// returns the digest. It does not store a bundle twice.
	PutBundle(ctx context.Context, r io.ReadSeeker) (digest string, err error)
}

// Push is a manifest with its targets and terms.
type Push struct {
	Source  *Source
	Name    string
	Targets []Target
	Terms   Terms
	// Bundle forces a bundle where the manifest alone would do.
	Bundle bool
}

// Pushed is the result for one target.
type Pushed struct {
	Key      string `json:"key"`
	Revision uint64 `json:"revision"`
	// Digest is that of the manifest's text or the bundle's bytes.
	Digest string `json:"digest"`
	Bundle bool   `json:"bundle,omitempty"`
	// Unchanged is set where the same was assigned already.
	Unchanged bool `json:"unchanged,omitempty"`
}

// Pusher assigns manifests.
type Pusher struct {
	Assignments Assignments
	Bundles     Bundles
	// OnBundle, if set, gets the size of a bundle in bytes, before it is stored.
	OnBundle func(size int64)
}

// Push assigns to every target, and returns the results also when some failed;
// the error names those. It does not push what is assigned already. The error
// wraps model.ErrTooLarge where only a bundle can be pushed.
func (p *Pusher) Push(ctx context.Context, push Push) ([]Pushed, error) {
	value, digest, packed, err := push.value(ctx)
	defer packed.remove()
	if err != nil {
		return nil, err
	}
	var done []Pushed
	var failed []error
	for _, target := range push.Targets {
		one := Pushed{Key: target.Key(push.Name), Digest: digest, Bundle: packed != nil}
		if err := p.one(ctx, &one, value, packed); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", one.Key, err))
			continue
		}
		done = append(done, one)
	}

	return done, errors.Join(failed...)
}

// one assigns to one target. It stores the bundle first, so that no node reads of
// a missing one.
func (p *Pusher) one(ctx context.Context, out *Pushed, value []byte, packed *packed) error {
	current, err := p.Assignments.Get(ctx, out.Key)
	switch {
	case err == nil && same(current.Value, value):
		out.Revision, out.Unchanged = current.Revision, true
		return nil
	case err != nil && !errors.Is(err, model.ErrNotFound):
		return err
	}
	if packed != nil {
		if err := p.store(ctx, packed, out.Digest); err != nil {
			return err
		}
	}
	out.Revision, err = p.Assignments.Put(ctx, out.Key, value)

	return err
}

func (p *Pusher) store(ctx context.Context, packed *packed, digest string) error {
	if packed.stored {
		return nil
	}
	info, err := packed.file.Stat()
	if err != nil {
		return err
	}
	if p.OnBundle != nil {
		p.OnBundle(info.Size())
	}
	stored, err := p.Bundles.PutBundle(ctx, packed.file)
	if err == nil && stored != digest {
		err = fmt.Errorf("stored as %s, want %s", stored, digest)
	}
	if err != nil {
		return fmt.Errorf("store bundle: %w", err)
	}
	packed.stored = true

	return nil
}

// value returns the value for the bucket, and the bundle as a temporary file
// where one is needed.
func (push Push) value(ctx context.Context) (value []byte, digest string, bundle *packed, err error) {
	digest = model.DigestOf(push.Source.Text)
	a := push.Terms.assignment(push.Name, time.Now().UTC())
	switch {
	case push.Bundle || push.Source.NeedsBundle():
		if bundle, digest, err = push.Source.pack(ctx); err != nil {
			return nil, "", nil, err
		}
		a.Bundle = digest
	case push.Terms.IsZero():
		return push.Source.Text, digest, nil, nil
	default:
		a.Manifest = string(push.Source.Text)
	}
	a.Digest = digest
	value, err = model.EncodeAssignment(a)

	return value, digest, bundle, err
}

// packed is a bundle in a temporary file: it may be larger than memory.
type packed struct {
	file   *os.File
	stored bool
}

// pack writes the bundle to a temporary file.
func (s *Source) pack(ctx context.Context) (*packed, string, error) {
	f, err := os.CreateTemp("", "muster-bundle-*.tar.gz")
	if err != nil {
		return nil, "", err
	}
	p := &packed{file: f}
	digest, err := s.bundle(ctx, f)
	if err != nil {
		p.remove()
	}

	return p, digest, err
}

// remove removes the file; the system clears one that stays.
func (p *packed) remove() {
	if p != nil {
		_ = p.file.Close()
		_ = os.Remove(p.file.Name())
	}
}
