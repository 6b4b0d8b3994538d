package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/fleet/web/api"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

// maxAsked is how many pages and answers read from NATS at the same time: a run is up to 128 MiB.
const maxAsked = 8

// maxOwn is how many of these places one user has: a run that does not exist takes long.
const maxOwn = 3

// gated is a source of pages and of the API that is asked by few at once; the others wait until their contexts end.
type gated struct {
	source web.Source
	places *access.Turns
	// away returns why NATS cannot be asked now, nil when it can. Without it nobody knows.
	away func() error
	// registrations are those that were read last: they may be many.
	registrations *ttlCache[[]registration.Registration]
	// answers caches the answers to requests.
	answers *ttlCache[view.Answers]
}

// registeredFor is how long what nodes registered is shown as it was read.
const registeredFor = 3 * time.Second

func newGated(s web.Source) gated {
	return gated{source: s, places: access.NewTurns(maxAsked, maxOwn), registrations: newTTLCache[[]registration.Registration](registeredFor, 1), answers: newTTLCache[view.Answers](answersFor, maxAnswered)}
}

// Run returns a run, or api.ErrBusy.
func (g gated) Run(ctx context.Context, node, id string) (view.RunDetail, error) {
	return through(ctx, g, func() (view.RunDetail, error) { return g.source.Run(ctx, node, id) })
}

// Facts returns the facts of a node, or api.ErrBusy.
func (g gated) Facts(ctx context.Context, node string) (json.RawMessage, error) {
	return through(ctx, g, func() (json.RawMessage, error) { return g.source.Facts(ctx, node) })
}

// History returns the revisions of an assignment, or api.ErrBusy.
func (g gated) History(ctx context.Context, key string) ([]model.Entry, error) {
	return through(ctx, g, func() ([]model.Entry, error) { return g.source.History(ctx, key) })
}

// Assigned returns revisions of assignments, or api.ErrBusy.
func (g gated) Assigned(ctx context.Context) (all []model.Entry, more bool, err error) {
	all, err = through(ctx, g, func() ([]model.Entry, error) {
		all, older, err := g.source.Assigned(ctx)
		more = older
		return all, err
	})

	return all, more, err
}

// Control returns what operators wrote about nodes, or api.ErrBusy.
func (g gated) Control(ctx context.Context) (all []model.Entry, more bool, err error) {
	all, err = through(ctx, g, func() ([]model.Entry, error) {
		all, others, err := g.source.Control(ctx)
		more = others
		return all, err
	})

	return all, more, err
}

// Registrations returns what nodes registered, which is read once for all who ask within some seconds, or api.ErrBusy.
// Nobody may change it.
func (g gated) Registrations(ctx context.Context) ([]registration.Registration, error) {
	return g.registrations.Get(ctx, "", func(ctx context.Context) ([]registration.Registration, error) {
		return through(access.ForAll(ctx), g, func() ([]registration.Registration, error) { return g.source.Registrations(ctx) })
	})
}

// through calls get when there is a place for the user of a context, and a connection.
func through[T any](ctx context.Context, g gated, get func() (T, error)) (none T, err error) {
	if g.away != nil {
		if err := g.away(); err != nil {
			return none, fmt.Errorf("%w (%w)", api.ErrUnavailable, err)
		}
	}
	leave, ok := g.places.Enter(ctx, access.UserOf(ctx).Share())
	if !ok {
		return none, api.ErrBusy
	}
	defer leave()

	return get()
}
