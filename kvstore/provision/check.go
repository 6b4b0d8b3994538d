package provision

import (
	"context"
	"errors"
	"fmt"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// ErrDiffers is a bucket or stream that muster can work with although a setting
// is not as it should be. The remedy is that of ErrNotProvisioned.
var ErrDiffers = errors.New("NATS is not set up as muster sets it up")

// Check tells whether every bucket and stream is there and configured as muster
// needs it. The error wraps ErrNotProvisioned when something is missing or not
// usable, and ErrDiffers when all is usable, and names all that is not as it
// should be. Check needs no more than a node may ask.
func (s Provisioner) Check(ctx context.Context) error {
	var wrong []error
	kind := ErrDiffers
	for _, want := range desired(s.store.Names(), Options{}) {
		info, err := s.store.StreamInfo(ctx, want.Name, want.Subjects[0])
		if errors.Is(err, model.ErrNotFound) {
			wrong = append(wrong, fmt.Errorf("%s is missing", want.Name))
			if want.Name != s.store.Names().Registrations() { // a fleet can do without, as long as nothing registers
				kind = kvstore.ErrNotProvisioned
			}
			continue
		}
		if err != nil {
			return err
		}
		for _, c := range compare(info.Config, want) {
			wrong = append(wrong, fmt.Errorf("%s: %s", want.Name, c))
			if !c.optional {
				kind = kvstore.ErrNotProvisioned
			}
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%w, run `muster fleet init`: %w", kind, errors.Join(wrong...))
	}

	return nil
}
