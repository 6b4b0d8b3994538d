package servecmd

import (
	"context"
	"errors"
	"log/slog"

	"github.com/musterfleet/muster/cmd/muster/fleetcmd/live"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/pauses"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/signing"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/control"
	"github.com/musterfleet/muster/model"
)

// doer does on NATS what operators order over HTTP.
type doer struct {
	store  *kvstore.Store
	signer *signing.Signing
	log    *slog.Logger
	// paused returns the control key by which a node is paused, empty where it is not.
	paused func(node string) string
}

// unsigned is what whoever pauses or resumes should know where there is no key.
const unsigned = "what was there before was signed, and this is not: nodes with trust.keys refuse it. Start muster fleet serve with --sign-key FILE"

func noteOf(w pauses.Written) string {
	if w.Unsigned {
		return unsigned
	}

	return ""
}

// Pause writes the pause of a family.
func (d doer) Pause(ctx context.Context, family string, p model.Pause) (string, error) {
	w, err := d.pauses(p.By, func(by pauses.Pauses) (pauses.Written, error) { return by.Begin(ctx, family, p) })

	return noteOf(w), err
}

// Resume ends the pause of a family.
func (d doer) Resume(ctx context.Context, family, author string) (string, error) {
	from := ""
	if t, _, err := fleet.ParseKey(model.Key(family, "x")); err == nil && t.Node != "" {
		from = d.paused(t.Node)
	}
	w, err := d.pauses(author, func(by pauses.Pauses) (pauses.Written, error) { return by.End(ctx, family, from) })

	return noteOf(w), err
}

func (d doer) pauses(author string, write func(pauses.Pauses) (pauses.Written, error)) (pauses.Written, error) {
	return write(pauses.Pauses{Bucket: control.New(d.store).By(author), Signer: d.signer})
}

// errNotOwn is a user whose requests reach no node.
var errNotOwn = errors.New("nodes cannot be asked to run anything: the user of muster fleet serve has an account of its own, from which no request reaches a node at once. Start it as an administrator, a user of the account FLEET, to run and preview; pausing and resuming needs no more")

// CanAsk returns why no node can be asked, nil where they can.
func (d doer) CanAsk() error {
	if !d.store.Places().InUse().IsOwn() {
		return errNotOwn
	}

	return nil
}

// Run has nodes run what is assigned to them.
func (d doer) Run(ctx context.Context, nodes []model.Node, request model.RunRequest, answered func(model.EnsureResponse)) (*fleet.Ensured, error) {
	ensurer := fleet.Ensurer{Asker: live.Runs{Store: d.store, Signer: d.signer, Log: d.log, Request: request}, Nodes: live.Nodes(nodes), OnAnswer: answered}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Node
	}

	return ensurer.Ensure(ctx, fleet.Targets(names, nil, false), model.EnsureRequest{ID: request.ID})
}
