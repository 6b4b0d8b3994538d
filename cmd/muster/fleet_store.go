package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/nodes"
	"github.com/musterfleet/muster/kvstore/reports"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
)

// fleetStore gives package fleet what it needs of NATS.
type fleetStore struct {
	*natsStore
	log *slog.Logger
	// told are the nodes whose state cannot be read, so that it is said once.
	told map[string]bool
}

// Get gives the assignment in force.
func (f *fleetStore) Get(ctx context.Context, key string) (model.Entry, error) {
	e, err := f.natsStore.Get(ctx, key)
	e.Digest = fleet.ContentDigest(e.Value)

	return e, err
}

// History gives the revisions of an assignment that are still there.
func (f *fleetStore) History(ctx context.Context, key string) ([]model.Entry, error) {
	all, err := f.natsStore.History(ctx, key)
	for i := range all {
		if !all[i].Deleted {
			all[i].Digest = fleet.ContentDigest(all[i].Value)
		}
	}

	return all, err
}

// list gives all assignments, or those of a name or key.
func (f *fleetStore) list(ctx context.Context, families []string, nameOrKey string) ([]model.Entry, error) {
	all, err := f.List(ctx, families...)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(e model.Entry) bool { return nameOrKey != "" && e.Name != nameOrKey && e.Key != nameOrKey })
	for i, e := range all {
		if e.Value != nil {
			all[i].Digest, all[i].Value = fleet.ContentDigest(e.Value), nil
		}
	}

	return all, nil
}

// named gives the assignments of a name, or the one of a key. When there is
// none the error says what there is.
func (f *fleetStore) named(ctx context.Context, nameOrKey string) ([]model.Entry, error) {
	all, err := f.list(ctx, nil, nameOrKey)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("no manifest %s is assigned: %w (see muster fleet ls)", nameOrKey, model.ErrNotFound)
	}

	return all, err
}

// Nodes gives all nodes by name. What one of them says and cannot be read is
// logged, and keeps nobody from seeing the others.
func (f *fleetStore) Nodes(ctx context.Context) ([]model.Node, error) {
	all, err := f.natsStore.Nodes(ctx)
	for _, err := range flatten(err) {
		if !errors.Is(err, nodes.ErrInvalidState) {
			return nil, err
		}
		if !f.told[err.Error()] {
			f.told[err.Error()] = true
			f.log.Warn("what a node says of itself cannot be read", "error", err)
		}
	}

	return all, nil
}

// flatten gives the errors that were joined.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}

	return []error{err}
}

// Ask sends an ensure request to the nodes of a target.
func (f *fleetStore) Ask(ctx context.Context, target fleet.Target, req model.EnsureRequest) iter.Seq2[model.EnsureResponse, error] {
	return func(yield func(model.EnsureResponse, error) bool) {
		data, err := encodeRequest(req)
		if err != nil {
			yield(model.EnsureResponse{}, err)
			return
		}
		for reply, err := range f.natsStore.Ask(ctx, f.Names().Request(kvstore.VerbEnsure, target.String()), data) {
			// That nobody is there shows by who does not answer.
			if errors.Is(err, requests.ErrNobody) {
				return
			}
			// What no node has proved to be its answer counts for none.
			if err == nil && reply.Node == "" {
				continue
			}
			if !yield(ensureResponse(reply), err) {
				return
			}
		}
	}
}

// encodeRequest writes JSON for a message, which has a limit of size: <, > and &
// stay one byte each.
func encodeRequest(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}

	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// ensureResponse reads an answer; one that cannot be read is that of a failure.
func ensureResponse(r requests.Reply) model.EnsureResponse {
	var out model.EnsureResponse
	err := json.Unmarshal(r.Data, &out)
	switch {
	case r.Problem != "":
		out = model.EnsureResponse{Phase: model.EnsureFailed, Error: r.Problem}
	case err != nil:
		out = model.EnsureResponse{Phase: model.EnsureFailed, Error: "the answer cannot be read: " + err.Error()}
	}
	out.Node = r.Node

	return out
}

// leave leaves a request for a node that is away.
func (f *fleetStore) leave(ctx context.Context, node string, req model.EnsureRequest, ttl time.Duration) error {
	req.Expires = time.Now().Add(ttl).UTC()
	data, err := encodeRequest(req)
	if err != nil {
		return err
	}

	return f.PutCommand(ctx, model.NodeFamily(node), req.ID+"-"+node, data, ttl)
}

// reports reads reports, each once.
func (f *fleetStore) reports(ctx context.Context, filter reports.Filter) iter.Seq2[model.Report, error] {
	return func(yield func(model.Report, error) bool) {
		var repeats fleet.Repeats
		for r, err := range f.Reports(ctx, filter) {
			if err == nil && repeats.Seen(r) {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
