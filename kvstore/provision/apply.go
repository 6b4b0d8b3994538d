package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/jsm.go"
	"github.com/nats-io/jsm.go/api"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

var (
	// ErrShrink reports a change that would lose data or that the server cannot make. Nothing was
	// changed.
	ErrShrink = errors.New("refused to change")
	// ErrNoRoom reports that the server or the account lacks storage, or allows no further stream.
	ErrNoRoom = kvstore.ErrNoRoom
	// ErrUnchecked reports an unneeded bucket or stream whose servers do not answer.
	ErrUnchecked = errors.New("its servers do not answer: it is not checked")
	// ErrDiffers reports a setting that differs but that muster can work with. The remedy is the same
	// as for kvstore.ErrNotProvisioned.
	ErrDiffers = errors.New("NATS is not set up as muster sets it up")
)

// Difference describes the required change of one bucket or stream.
type Difference struct {
	// Stream is the name of the stream behind the bucket.
	Stream string `json:"stream"`
	// Create reports whether the stream is missing.
	Create bool `json:"create,omitempty"`
	// Changes are the settings of an existing stream that differ.
	Changes []Change `json:"changes,omitempty"`

	config api.StreamConfig
}

// String returns the difference in one line.
func (d Difference) String() string {
	if d.Create {
		return "create " + d.Stream
	}
	lines := make([]string, len(d.Changes))
	for i, c := range d.Changes {
		lines[i] = c.String()
	}

	return "change " + d.Stream + ": " + strings.Join(lines, "; ")
}

// Plan returns what Apply would do, and changes nothing. The error wraps kvstore.ErrFormat for a
// bucket or stream in an unknown format.
func (p Provisioner) Plan(ctx context.Context, o Options) ([]Difference, error) {
	// A node may list streams but not change them, so this call fails before Apply changes anything.
	if err := kvstore.CheckServer(p.store.Conn()); err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	found, err := p.store.Infos(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	differences, unanswered, err := p.differences(found, o)
	if err != nil {
		return nil, err
	}
	if len(unanswered) > 0 {
		_, err := found.Of(unanswered[0])
		return nil, err
	}
	// The list of streams has found the JetStream API prefix.
	at := p.store.Places().InUse()
	if _, err := p.store.Request(ctx, at.StreamInfo(p.store.Names().Registrations()), nil); err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}

	return differences, nil
}

// differences compares the streams that were found with the desired ones. It also returns the streams
// whose servers do not answer.
func (p Provisioner) differences(found kvstore.Infos, o Options) (differences []Difference, unanswered []string, err error) {
	created, all := desired(p.store.Names(), o.withDefaults()), desired(p.store.Names(), o)
	isUnfinished := slices.ContainsFunc(all, func(want kvstore.Stream) bool {
		_, err := found.Of(want.Config.Name)
		return errors.Is(err, model.ErrNotFound)
	})
	var unknown []error
	for i, want := range all {
		name := want.Config.Name
		info, err := found.Of(name)
		switch {
		case errors.Is(err, model.ErrNotFound):
			differences = append(differences, Difference{Stream: name, Create: true, config: created[i].Config})
			continue
		case err != nil:
			unanswered = append(unanswered, name)
			continue
		}
		unknown = append(unknown, kvstore.CheckFormat(info.Config, want.Config))
		changes, config := compare(info.Config, withBounds(want.Config, info.Config, created[i].Config, info.State.Bytes), info.State.Bytes)
		if isUnfinished && info.State.Msgs == 0 {
			allowShrink(changes)
		}
		if len(changes) > 0 {
			differences = append(differences, Difference{Stream: name, Changes: changes, config: config})
		}
	}
	if err := errors.Join(unknown...); err != nil {
		return nil, nil, fmt.Errorf("nothing was changed: %w", err)
	}

	return differences, unanswered, nil
}

// Check returns an error unless every bucket and stream exists and is configured as muster needs it.
// The error wraps kvstore.ErrNotProvisioned if something is missing or unusable, ErrDiffers if
// everything is usable, or kvstore.ErrFormat. It names every difference. Nodes have the permission to
// check.
//
// Check waits while a needed stream elects a leader. The error wraps kvstore.ErrUnanswered if the
// servers of a needed stream do not answer. If the servers of another stream do not answer, Check
// skips that stream, and the error wraps ErrUnchecked unless something else is wrong.
func (p Provisioner) Check(ctx context.Context, needed ...string) error {
	found, err := p.survey(ctx, needed)
	if err != nil {
		return err
	}
	differences, unanswered, err := p.differences(found, Options{})
	if err != nil {
		return err
	}
	unchecked := error(nil)
	if len(unanswered) > 0 {
		unchecked = fmt.Errorf("stream %s: %w", strings.Join(unanswered, ", "), ErrUnchecked)
	}
	optional := map[string]bool{}
	for _, s := range p.store.Names().Streams() {
		optional[s.Config.Name] = s.Optional
	}
	var wrong []string
	kind := ErrDiffers
	for _, d := range differences {
		if d.Create {
			wrong = append(wrong, d.Stream+" is missing")
			if !optional[d.Stream] {
				kind = kvstore.ErrNotProvisioned
			}
		}
		for _, c := range d.Changes {
			wrong = append(wrong, fmt.Sprintf("%s: %s", d.Stream, c))
			if !c.optional {
				kind = kvstore.ErrNotProvisioned
			}
		}
	}
	if len(wrong) == 0 {
		return unchecked
	}
	err = fmt.Errorf("%w, run `%s`: %s", kind, p.store.Names().Init(), strings.Join(wrong, "; "))
	if unchecked != nil {
		err = fmt.Errorf("%w; %w", err, unchecked)
	}

	return err
}

// Apply creates missing streams, changes those that differ, and returns what it did. If one change is
// refused, Apply changes nothing, and the error wraps ErrShrink and names every refused change. The
// error wraps ErrNoRoom if the server lacks room.
func (p Provisioner) Apply(ctx context.Context, o Options) ([]Difference, error) {
	differences, err := p.Plan(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := refusals(differences); err != nil {
		return nil, err
	}
	at := p.store.Places().InUse()
	m, err := jsm.New(p.store.Conn(), jsm.WithTimeout(kvstore.RequestTimeout), jsm.WithAPIPrefix(string(at)))
	if err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	for i, d := range differences {
		if err := ctx.Err(); err != nil {
			return differences[:i], err
		}
		if err := p.provision(ctx, m, d); err != nil {
			return differences[:i], fmt.Errorf("%s: %w", d, err)
		}
	}

	return differences, nil
}

// refusals returns one error for all refused changes.
func refusals(differences []Difference) error {
	var refused []error
	for _, d := range differences {
		for _, c := range d.Changes {
			if c.Refused != "" {
				refused = append(refused, fmt.Errorf("%s: %s", d.Stream, c))
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}

	return fmt.Errorf("%w: %w", ErrShrink, errors.Join(refused...))
}

func (p Provisioner) provision(ctx context.Context, m *jsm.Manager, d Difference) error {
	if d.Create {
		_, err := m.NewStreamFromDefault(d.Stream, d.config)
		return roomError(err)
	}
	stream, err := m.LoadStream(d.Stream)
	if err == nil && kvstore.IsFormer(stream.Configuration(), d.config) {
		err = p.convert(ctx, stream, &d.config)
	}
	if err != nil {
		return err
	}

	return roomError(stream.UpdateConfiguration(d.config))
}

// roomError wraps err with ErrNoRoom if the server lacks room.
func roomError(err error) error {
	const (
		insufficientResources = 10023
		tooManyStreams        = 10027
		insufficientStorage   = 10047
		noLimits              = 10120
		tooManyBytes          = 10122
	)
	for _, code := range []uint16{insufficientResources, insufficientStorage, tooManyStreams, noLimits, tooManyBytes} {
		if jsm.IsNatsError(err, code) {
			return fmt.Errorf("%w: %w", ErrNoRoom, err)
		}
	}

	return err
}
