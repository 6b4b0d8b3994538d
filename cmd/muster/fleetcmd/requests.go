package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"os/user"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// patience is how long nodes may take to answer after a reconnect.
const patience = kvstore.Settling + 3*time.Second

// Asker sends one request to nodes and implements ask.Network.
type Asker struct {
	Store *kvstore.Store
	Log   *slog.Logger
	// Verb is the verb of the subject.
	Verb string
	// Sender names the sender, if set.
	Sender model.Sender
	// Expires is the expiry of the request. If it is zero, the request expires Within after it is sent.
	Expires time.Time
	Within  time.Duration
	// Encode returns the message to the nodes of a family.
	Encode func(ctx context.Context, family string, expires time.Time) ([]byte, error)
	// Decode decodes an answer; nil decodes a model.EnsureResponse. Several goroutines call it. An error is the failure of
	// the node.
	Decode func(data []byte) (model.EnsureResponse, error)
}

// Patience returns how much longer nodes may take to answer, because they may reconnect later than this process.
func (a Asker) Patience() time.Duration {
	if a.Store.Away() != nil {
		return time.Second
	}

	return time.Until(a.Store.Reconnected().Add(patience))
}

// Await waits for the connection, at most as long as a batch may take.
func (a Asker) Await(ctx context.Context, batch string) error {
	away := a.Store.Away()
	if away == nil {
		return nil
	}
	a.Log.Warn(batch+" waits: not connected to NATS", "timeout", a.Within)
	ctx, done := context.WithTimeout(ctx, a.Within)
	defer done()
	if err := a.Store.AwaitConnection(ctx); err != nil {
		return fmt.Errorf("%s did not begin, not connected to NATS for %s: %w", batch, a.Within, away)
	}

	return nil
}

// Send sends the request to the nodes of each family and yields the answers that nodes proved to be their own.
func (a Asker) Send(ctx context.Context, families, awaited []string) iter.Seq2[model.EnsureResponse, error] {
	return func(yield func(model.EnsureResponse, error) bool) {
		expires := a.Expires
		if expires.IsZero() {
			expires = time.Now().Add(a.Within).UTC()
		}
		all := make([]requests.Request, len(families))
		for i, family := range families {
			data, err := a.Encode(ctx, family, expires)
			if err != nil {
				yield(model.EnsureResponse{}, err)
				return
			}
			all[i] = requests.Request{Subject: a.Store.Names.Request(a.Verb, family), Data: data, Awaited: awaited}
		}
		if away := a.Store.Away(); away != nil {
			a.Log.Warn("request waits: not connected to NATS", "target", print.Some(families, "and others"), "error", away)
		}
		for reply, err := range requests.New(a.Store).From(a.Sender).Ask(ctx, all) {
			switch {
			case errors.Is(err, requests.ErrNobody):
				return // the nodes count as missing
			case errors.Is(err, requests.ErrLost):
				WarnLost(a.Log, print.Some(families, "and others"), "nodes that did not answer receive it again, and no node runs it twice", err)
				continue
			case err == nil && reply.Node == "":
				continue // no node proved that the answer is its own
			case reply.Flood:
				a.Log.Warn("node floods its answers, the rest is dropped", "node", reply.Node)
			}
			if !yield(a.decode(reply), err) {
				return
			}
		}
	}
}

// queue stores the request for a family until a node reads it or ttl has passed. It replaces a queued request with the
// same id.
func (a Asker) queue(ctx context.Context, family, id string, ttl time.Duration) error {
	data, err := a.Encode(ctx, family, time.Now().Add(ttl).UTC())
	if err != nil {
		return err
	}

	return requests.New(a.Store).From(a.Sender).PutCommand(ctx, family, id, data, ttl)
}

// reconnectTime limits the wait for a lost connection.
const reconnectTime = 15 * time.Second

// queueMissing queues the request for the nodes that did not answer, except for families in queued. If the connection
// is lost, which a flood of answers may cause, it waits and tries again.
func (a Asker) queueMissing(ctx context.Context, out *ask.Ensured, id string, ttl time.Duration, queued []string) error {
	for i, node := range out.Missing {
		family := model.NodeFamily(node)
		if !slices.Contains(queued, family) {
			err := a.queue(ctx, family, id, ttl)
			if err != nil && a.isReconnected(ctx) {
				err = a.queue(ctx, family, id, ttl)
			}
			if err != nil {
				out.Missing = out.Missing[i:]
				return err
			}
		}
		out.Queued = append(out.Queued, node)
	}
	out.Missing = nil

	return nil
}

// isReconnected waits for a lost connection and reports whether it is back.
func (a Asker) isReconnected(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, reconnectTime)
	defer cancel()

	return a.Store.AwaitConnection(ctx) == nil
}

// decode decodes an answer. An invalid answer becomes a failed one.
func (a Asker) decode(r requests.Reply) model.EnsureResponse {
	if r.Problem != "" {
		return model.EnsureResponse{Node: r.Node, Phase: model.EnsureFailed, Error: r.Problem}
	}
	decode := ask.DecodeAnswer
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

// encoder returns an Asker.Encode: it encodes the document that expires at a time, and signs it unless signer is nil.
func encoder(signer *assign.Signing, action signed.Action, document func(expires time.Time) any) func(ctx context.Context, family string, expires time.Time) ([]byte, error) {
	return func(ctx context.Context, family string, expires time.Time) ([]byte, error) {
		data, err := model.EncodeJSON(document(expires))
		if err != nil || signer == nil {
			return data, err
		}

		return signer.SignRequest(ctx, action, family, data, expires)
	}
}

// RunAsker returns the asker of a run request, signed unless signer is nil. A request without an expiry is valid for
// within after it is sent.
func RunAsker(store *kvstore.Store, signer *assign.Signing, log *slog.Logger, from model.Sender, request model.RunRequest, within time.Duration) Asker {
	return Asker{Store: store, Log: log, Verb: kvstore.VerbRun, Sender: from, Expires: request.Expires, Within: within, Encode: encoder(signer, signed.Run, func(expires time.Time) any {
		request := request
		request.Expires = expires
		return request
	})}
}

// NewPreviewAsker returns the asker of a preview, signed unless signer is nil. It decodes equal plans once.
func NewPreviewAsker(store *kvstore.Store, signer *assign.Signing, request model.PreviewRequest, log *slog.Logger) Asker {
	content, err := model.EncodeJSON(request) // once, because it may be long and the nodes many
	var mu sync.Mutex
	var decoder ask.PreviewDecoder

	return Asker{
		Store: store, Log: log, Verb: kvstore.VerbPreview, Expires: request.Expires,
		Encode: func(ctx context.Context, family string, expires time.Time) ([]byte, error) {
			if err != nil || signer == nil {
				return content, err
			}
			return signer.SignRequest(ctx, signed.Preview, family, content, expires)
		},
		Decode: func(data []byte) (model.EnsureResponse, error) {
			mu.Lock()
			defer mu.Unlock()
			return decoder.Decode(data)
		},
	}
}

const (
	// maxNodeFilter is the maximum number of nodes in a filter of reports. For more nodes, all reports are read.
	maxNodeFilter = 64
	// clockSkew is the assumed difference between the clocks of the operator and the server.
	clockSkew = time.Hour
)

// ReportsOf returns the reports of the request with an id. onInvalid, if set, is called for each invalid report.
func ReportsOf(store *kvstore.Store, id string, onInvalid func(error)) ask.Reports {
	return func(ctx context.Context, nodes []string, follow bool) iter.Seq2[model.Report, error] {
		filter := model.ReportRange{Kind: model.KindEnsure, Since: sentAfter(id, time.Now()), Follow: follow}
		if len(nodes) <= maxNodeFilter {
			filter.Nodes = nodes
		}
		return func(yield func(model.Report, error) bool) {
			for report, err := range kvstore.NewReports(store).Reports(ctx, filter) {
				if errors.Is(err, kvstore.ErrInvalidEvent) {
					if onInvalid != nil {
						onInvalid(err)
					}
					continue
				}
				if !yield(report, err) {
					return
				}
			}
		}
	}
}

// sentAfter returns a time before the request with an id was sent. The ids of muster contain that time; the results of
// other ids are known for a day.
func sentAfter(id string, now time.Time) time.Time {
	if at, err := ksuid.Parse(id); err == nil && at.Time().Before(now.Add(clockSkew)) {
		return at.Time().Add(-clockSkew)
	}

	return now.Add(-kvstore.MaxCommandTTL - clockSkew)
}

// WarnLost warns that answers may be lost. err wraps requests.ErrLost; then describes the consequence.
func WarnLost(log *slog.Logger, target, then string, err error) {
	why := strings.TrimPrefix(err.Error(), requests.ErrLost.Error()+": ")
	log.Warn(requests.ErrLost.Error()+": "+then, "target", target, "error", why)
}

// maxOperator is the maximum length of the operator's name, in characters.
const maxOperator = 64

// Operator returns USER@HOST of the current user. The name is informational and not verified.
func Operator() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil && name != "" {
		name += "@" + host
	}

	return print.Cut(print.Text(name), maxOperator)
}
