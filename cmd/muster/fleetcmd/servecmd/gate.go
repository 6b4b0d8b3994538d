package servecmd

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

// maxAsked is how many pages and answers read from NATS at the same time: a run is up to 128 MiB.
const maxAsked = 8

// errBusy is a source of which too much is asked.
var errBusy = errors.New("too many read from NATS at the same time: try again")

// gated is a source that is asked by few at once; the others wait until their contexts end.
type gated struct {
	source web.Source
	places chan struct{}
}

func newGated(s web.Source) gated { return gated{s, make(chan struct{}, maxAsked)} }

// Run returns a run, or errBusy.
func (g gated) Run(ctx context.Context, node, id string) (view.RunDetail, error) {
	return through(ctx, g.places, func() (view.RunDetail, error) { return g.source.Run(ctx, node, id) })
}

// Facts returns the facts of a node, or errBusy.
func (g gated) Facts(ctx context.Context, node string) (json.RawMessage, error) {
	return through(ctx, g.places, func() (json.RawMessage, error) { return g.source.Facts(ctx, node) })
}

// History returns the revisions of an assignment, or errBusy.
func (g gated) History(ctx context.Context, key string) ([]model.Entry, error) {
	return through(ctx, g.places, func() ([]model.Entry, error) { return g.source.History(ctx, key) })
}

// Assigned returns revisions of assignments, or errBusy.
func (g gated) Assigned(ctx context.Context) (all []model.Entry, more bool, err error) {
	all, err = through(ctx, g.places, func() ([]model.Entry, error) {
		all, older, err := g.source.Assigned(ctx)
		more = older
		return all, err
	})

	return all, more, err
}

// Control returns what operators wrote about nodes, or errBusy.
func (g gated) Control(ctx context.Context) ([]model.Entry, error) {
	return through(ctx, g.places, func() ([]model.Entry, error) { return g.source.Control(ctx) })
}

// Registrations returns what nodes registered, or errBusy.
func (g gated) Registrations(ctx context.Context) ([]registration.Registration, error) {
	return through(ctx, g.places, func() ([]registration.Registration, error) { return g.source.Registrations(ctx) })
}

// through calls get when there is a place.
func through[T any](ctx context.Context, places chan struct{}, get func() (T, error)) (none T, err error) {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
		return get()
	case <-ctx.Done():
		return none, errBusy
	}
}
