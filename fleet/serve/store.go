package serve

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/webhook"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

// Store is the data of a fleet in NATS.
type Store struct {
	Connection    Connection
	Nodes         Nodes
	Assignments   Assignments
	Reports       Reports
	Control       Control
	Registrations Registrations
	Storage       fleet.Storage
}

// Connection is the connection to NATS.
type Connection interface {
	// Away returns why NATS cannot be reached, nil if it can.
	Away() error
	// AwaitConnection waits until NATS can be reached, or ctx ends. It returns the error of a closed connection.
	AwaitConnection(ctx context.Context) error
	// Reconnected returns the time of the last reconnect, zero for none.
	Reconnected() time.Time
	// IsOutage reports whether an error is temporary because a server is away or a leader is being elected.
	IsOutage(err error) bool
}

// Stream is a stream or bucket that can be created again or restored.
type Stream interface {
	// Name returns a name for messages.
	Name() string
	// Age returns the creation time and the last sequence.
	Age(ctx context.Context) (created time.Time, last uint64, err error)
	// StoredAt returns when the server stored the message with a sequence. The error wraps model.ErrNotFound if
	// it is not there.
	StoredAt(ctx context.Context, sequence uint64) (time.Time, error)
}

// Nodes is the bucket of nodes.
type Nodes interface {
	Stream
	// Nodes returns all nodes. Nodes whose state cannot be read are Unreadable.
	Nodes(ctx context.Context) ([]model.Node, error)
	// Stored yields the names of the nodes that have a state.
	Stored(ctx context.Context) iter.Seq2[string, error]
	// State returns the state of a node, or an error that wraps model.ErrNotFound.
	State(ctx context.Context, node string) (model.Node, error)
	// Watch yields all states, and then every change until ctx ends.
	Watch(ctx context.Context) iter.Seq2[model.NodeChange, error]
	FactsDocument(ctx context.Context, node string) (json.RawMessage, error)
	Facts(ctx context.Context, nodes []string) iter.Seq2[model.NodeFacts, error]
	Inventories(ctx context.Context, nodes []string) iter.Seq2[model.Inventory, error]
}

// Assignments is the bucket of assignments.
type Assignments interface {
	Stream
	// List returns the assignments of some families, of all for none.
	List(ctx context.Context, families ...string) ([]model.Entry, error)
	// Changes yields nil for each change until ctx ends.
	Changes(ctx context.Context) iter.Seq[error]
	// Lost returns the keys that the bucket lost, of keys with the revisions that nodes run.
	Lost(ctx context.Context, revisions map[string]uint64) (map[string]bool, error)
	History(ctx context.Context, key string) ([]model.Entry, error)
	// Audit returns at most so many of the newest revisions of all keys, and whether there are more.
	Audit(ctx context.Context, most int) (all []model.Entry, more bool, err error)
}

// Reports is the stream of reports.
type Reports interface {
	Stream
	webhook.Deliverer
	// NewestMessage returns the last message; its sequence is 0 if there is none.
	NewestMessage(ctx context.Context) (model.StoredReports, error)
	Messages(ctx context.Context, in model.ReportRange) iter.Seq2[model.StoredReports, error]
	// End returns the last sequence, as the leader of the stream has it.
	End(ctx context.Context) (uint64, error)
	Bounds(ctx context.Context) (model.ReportBounds, error)
}

// Control is the bucket of pauses, labels and groups.
type Control interface {
	// Changes returns at most so many of the newest changes, and whether there are more.
	Changes(ctx context.Context, most int) (all []model.Entry, more bool, err error)
}

// Registrations is the stream of registered services.
type Registrations interface {
	// Services returns the registered services. If some cannot be read, the error wraps registration.ErrInvalid.
	Services(ctx context.Context) ([]registration.Registration, error)
}

// pause waits, or returns the error of ctx when it ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
