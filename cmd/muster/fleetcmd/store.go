package fleetcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/fleetcli"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/reports"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
)

// store is the fleet, with the look-ups of its assignments.
type store struct{ *fleetcli.Store }

func open(ctx context.Context, env *cli.Env) (*store, error) {
	s, err := fleetcli.Open(ctx, env)

	return &store{s}, err
}

// list returns all assignments, or those of a name or key.
func (s *store) list(ctx context.Context, families []string, nameOrKey string) ([]model.Entry, error) {
	all, err := s.List(ctx, families...)

	return slices.DeleteFunc(all, func(e model.Entry) bool { return nameOrKey != "" && e.Name != nameOrKey && e.Key != nameOrKey }), err
}

// key returns the key of a name that only one assignment has.
func (s *store) key(ctx context.Context, nameOrKey string) (string, error) {
	if isKey(nameOrKey) {
		return nameOrKey, nil
	}
	all, err := s.list(ctx, nil, nameOrKey)
	if err != nil {
		return "", err
	}

	return uniqueKey(all, nameOrKey)
}

// storedKey returns the key of a name that only one assignment has, or without any,
// only one removed assignment.
func (s *store) storedKey(ctx context.Context, nameOrKey string) (string, error) {
	key, err := s.key(ctx, nameOrKey)
	if !errors.Is(err, model.ErrNotFound) {
		return key, err
	}
	removed, err := s.Removed(ctx)
	if err != nil {
		return "", err
	}

	return uniqueKey(slices.DeleteFunc(removed, func(e model.Entry) bool { return e.Name != nameOrKey }), nameOrKey)
}

func uniqueKey(all []model.Entry, name string) (string, error) {
	switch len(all) {
	case 0:
		return "", notAssigned("manifest " + name)
	case 1:
		return all[0].Key, nil
	}
	keys := make([]string, len(all))
	for i, e := range all {
		keys[i] = e.Key
	}

	return "", cli.Usagef("%s is ambiguous; give a full key: %s", name, strings.Join(keys, ", "))
}

func notAssigned(what string) error {
	return fmt.Errorf("%s is not assigned: %w (see muster fleet ls)", what, model.ErrNotFound)
}

// Ask sends an ensure request to the nodes of a target.
func (s *store) Ask(ctx context.Context, target fleet.Target, req model.EnsureRequest) iter.Seq2[model.EnsureResponse, error] {
	return func(yield func(model.EnsureResponse, error) bool) {
		data, err := encodeRequest(req)
		if err != nil {
			yield(model.EnsureResponse{}, err)
			return
		}
		for reply, err := range requests.New(s.KV).Ask(ctx, s.KV.Names().Request(kvstore.VerbEnsure, target.String()), data) {
			// Nodes without an answer show that nobody is there.
			if errors.Is(err, requests.ErrNobody) {
				return
			}
			// An answer that no node proved to be its own does not count.
			if err == nil && reply.Node == "" {
				continue
			}
			if !yield(decodeResponse(reply), err) {
				return
			}
		}
	}
}

// queue stores a request for an unreachable node.
func (s *store) queue(ctx context.Context, node string, req model.EnsureRequest, ttl time.Duration) error {
	req.Expires = time.Now().Add(ttl).UTC()
	data, err := encodeRequest(req)
	if err != nil {
		return err
	}

	return requests.New(s.KV).PutCommand(ctx, model.NodeFamily(node), req.ID+"-"+node, data, ttl)
}

// encodeRequest encodes JSON for a message, whose size is limited: <, > and & stay
// one byte each.
func encodeRequest(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}

	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// decodeResponse decodes an answer; an invalid one is that of a failure.
func decodeResponse(r requests.Reply) model.EnsureResponse {
	var out model.EnsureResponse
	err := json.Unmarshal(r.Data, &out)
	switch {
	case r.Problem != "":
		out = model.EnsureResponse{Phase: model.EnsureFailed, Error: r.Problem}
	case err != nil:
		out = model.EnsureResponse{Phase: model.EnsureFailed, Error: "invalid answer: " + err.Error()}
	}
	out.Node = r.Node

	return out
}

// reports yields reports, each once.
func (s *store) reports(ctx context.Context, filter reports.Filter) iter.Seq2[model.Report, error] {
	return func(yield func(model.Report, error) bool) {
		var repeats fleet.Repeats
		for r, err := range reports.New(s.KV).Reports(ctx, filter) {
			if err == nil && repeats.Seen(r) {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
