package main

import (
	"context"
	"errors"
	"iter"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

func (f *fleetStore) Ask(context.Context, fleet.Target, model.EnsureRequest) iter.Seq2[model.EnsureResponse, error] {
	return func(yield func(model.EnsureResponse, error) bool) {
		yield(model.EnsureResponse{}, errors.ErrUnsupported)
	}
}

func (a *app) addFleetPermissions(*fisk.CmdClause) {}
