package fleetcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
)

// patience is how long nodes may take to answer once the connection is back.
const patience = kvstore.Settling + 3*time.Second

// OpenLive connects to the fleet where nodes answer at once, and opens the key that signs requests, nil
// for none.
func OpenLive(ctx context.Context, env *cli.Env, key *Signing) (*Store, *assign.Signing, error) {
	store, signer, err := OpenSigning(ctx, env, key, NeedNodes)
	if err == nil {
		err = store.KV.Ready(ctx)
	}

	return store, signer, err
}

// Asker sends one request to nodes. It is a request.Asker, which sends Encode's message instead of the
// request that it is given.
type Asker struct {
	Store *kvstore.Store
	Log   *slog.Logger
	// Verb is that of the subject.
	Verb string
	// Sender is who sends it.
	Sender model.Sender
	// Encode returns the message to the nodes of a family.
	Encode func(ctx context.Context, family string) ([]byte, error)
	// Decode decodes an answer, nil for a model.EnsureResponse. Several goroutines call it. What it
	// cannot decode is the answer of a failure.
	Decode func(data []byte) (model.EnsureResponse, error)
}

// Patience returns how much longer nodes have for their first answer, as the connection was lost:
// theirs may be made again a little later.
func (a Asker) Patience() time.Duration {
	if a.Store.Away() != nil {
		return time.Second
	}

	return time.Until(a.Store.Reconnected().Add(patience))
}

// Ask sends the request to the nodes of a target.
func (a Asker) Ask(ctx context.Context, target fleet.Target, awaited []string, _ model.EnsureRequest) iter.Seq2[model.EnsureResponse, error] {
	return a.ask(ctx, []string{target.String()}, awaited)
}

// AskNodes sends the request to each of some nodes.
func (a Asker) AskNodes(ctx context.Context, nodes []string, _ model.EnsureRequest) iter.Seq2[model.EnsureResponse, error] {
	families := make([]string, len(nodes))
	for i, n := range nodes {
		families[i] = model.NodeFamily(n)
	}

	return a.ask(ctx, families, nil)
}

// ask yields the answers which nodes proved to be their own. Awaited are nodes that should be there.
func (a Asker) ask(ctx context.Context, families, awaited []string) iter.Seq2[model.EnsureResponse, error] {
	return func(yield func(model.EnsureResponse, error) bool) {
		all := make([]requests.Request, len(families))
		for i, family := range families {
			data, err := a.Encode(ctx, family)
			if err != nil {
				yield(model.EnsureResponse{}, err)
				return
			}
			all[i] = requests.Request{Subject: a.Store.Names().Request(a.Verb, family), Data: data, Awaited: awaited}
		}
		if away := a.Store.Away(); away != nil {
			a.Log.Warn("request waits: not connected to NATS", "target", print.Some(families, "and others"), "error", away)
		}
		for reply, err := range requests.New(a.Store).From(a.Sender).AskEach(ctx, all) {
			switch {
			case errors.Is(err, requests.ErrNobody):
				// Nodes without an answer show that nobody is there.
				return
			case errors.Is(err, requests.ErrLost):
				WarnLost(a.Log, print.Some(families, "and others"), "nodes that did not answer are asked again, and none executes it twice", err)
				continue
			case err == nil && reply.Node == "":
				// An answer that no node proved to be its own does not count.
				continue
			case reply.Flood:
				a.Log.Warn("node floods its answers, the rest is dropped", "node", reply.Node)
			}
			if !yield(a.decode(reply), err) {
				return
			}
		}
	}
}

// decode decodes an answer; an invalid one is that of a failure.
func (a Asker) decode(r requests.Reply) model.EnsureResponse {
	if r.Problem != "" {
		return model.EnsureResponse{Node: r.Node, Phase: model.EnsureFailed, Error: r.Problem}
	}
	decode := decodeResponse
	if a.Decode != nil {
		decode = a.Decode
	}
	out, err := decode(r.Data)
	if err != nil {
		out = model.EnsureResponse{Phase: model.EnsureFailed, Error: err.Error()}
	}
	out.Node = r.Node

	return out
}

// maxMissing is what an answer may leave out of what a node of another version writes.
const maxMissing = 64 << 10

// decodeResponse decodes an answer. One that is several times as long where it is encoded is invalid: it leaves
// out what nodes always write, and so fills much memory.
func decodeResponse(data []byte) (model.EnsureResponse, error) {
	var out model.EnsureResponse
	if err := json.Unmarshal(data, &out); err != nil {
		return model.EnsureResponse{}, fmt.Errorf("invalid answer: %w", err)
	}
	if encoded, err := json.Marshal(out); err != nil || len(encoded) > 4*len(data)+maxMissing {
		return model.EnsureResponse{}, errors.New("invalid answer: too much is left out of it")
	}

	return out, nil
}

// RunAsker returns what sends a run request of somebody to nodes, signed where signer is not nil.
func RunAsker(store *kvstore.Store, signer *assign.Signing, log *slog.Logger, from model.Sender, request model.RunRequest) Asker {
	return Asker{Store: store, Log: log, Verb: kvstore.VerbRun, Sender: from, Encode: func(ctx context.Context, family string) ([]byte, error) {
		data, err := model.EncodeJSON(request)
		if err != nil || signer == nil {
			return data, err
		}
		return signer.Run(ctx, family, data, request.Expires)
	}}
}
