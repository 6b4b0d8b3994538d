package requests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// Command is a queued request.
type Command struct {
	// ID is the one it was put with; a command may arrive more than once.
	ID string
	// Family is node.<node> or group.<group>.
	Family string
	// Data is an ensure request.
	Data []byte
	// Time is when it was put, zero for one that was put just now.
	Time time.Time
}

// PutCommand queues a request for the nodes of a family, unreachable ones included.
// It expires after ttl, whole seconds, at least one, at most kvstore.MaxCommandTTL.
// An id is put once within two minutes. The error wraps model.ErrInvalidName or
// model.ErrTooLarge.
func (s Client) PutCommand(ctx context.Context, family, id string, request []byte, ttl time.Duration) error {
	if err := model.CheckFamily(family); err != nil {
		return err
	}
	switch {
	case id == "":
		return fmt.Errorf("%w: a command needs an id", model.ErrInvalidName)
	case ttl > kvstore.MaxCommandTTL:
		return fmt.Errorf("%w: the time to live of a command is %s, at most %s", model.ErrTooLarge, ttl, kvstore.MaxCommandTTL)
	}
	m := kvstore.NewMsg(s.store.Names().Command(family), request)
	if _, err := s.store.Publish(ctx, m, jetstream.WithMsgTTL(kvstore.WholeSeconds(ttl)), jetstream.WithMsgID(id)); err != nil {
		return fmt.Errorf("put command for %s: %w", family, err)
	}

	return nil
}

// CommandOptions say whose commands are handled.
type CommandOptions struct {
	Node   string
	Groups []string
	// Audit is how long a lost command stays unseen at most: 5 minutes.
	Audit time.Duration
	// Retry is the first pause after a failure, 1 second; the longest is 30 times it.
	Retry time.Duration
	// Log is for administrators.
	Log *slog.Logger
}

// Commands calls handle with each command for the node: those queued while it was
// away at start and after each reconnect, others as they arrive. Some arrive twice,
// so handle looks at their id; it must not block for long and is called by one
// goroutine at a time. A command for which it returns an error arrives again, after
// Retry. Commands returns nil when the context ends, and an error that wraps
// model.ErrInvalidName or is of the connection.
func (s Client) Commands(ctx context.Context, o CommandOptions, handle func(context.Context, Command) error) error {
	if err := model.CheckNode(o.Node, o.Groups); err != nil {
		return err
	}
	c := &commands{store: s.store, o: o, handle: handle, live: make(chan *nats.Msg, liveCommands), families: model.Families(o.Node, o.Groups), done: map[string]uint64{}}
	connected := s.store.Conn().StatusChanged(nats.CONNECTED)
	defer s.store.Conn().RemoveStatusListener(connected)
	for _, family := range c.families {
		sub, err := s.store.Conn().ChanSubscribe(s.store.Names().Command(family), c.live)
		if err != nil {
			return fmt.Errorf("commands: %w", err)
		}
		defer func() { _ = sub.Unsubscribe() }()
	}

	return c.run(ctx, connected)
}

// liveCommands is how many commands wait while one is handled; the audit finds
// others.
const liveCommands = 1024

// commands handles the commands of one node.
type commands struct {
	store    *kvstore.Store
	o        CommandOptions
	handle   func(context.Context, Command) error
	live     chan *nats.Msg
	families []string
	// done is the last sequence drained, by family.
	done map[string]uint64
}

func (c *commands) run(ctx context.Context, connected <-chan nats.Status) error {
	first := cmp.Or(c.o.Retry, time.Second)
	retry, drain := first, time.After(0)
	audit := cmp.Or(c.o.Audit, 5*time.Minute)
	logged := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case m := <-c.live:
			if err := c.accept(ctx, m); err != nil && ctx.Err() == nil {
				c.o.Log.Warn("command not accepted, will retry", "node", c.o.Node, "in", retry, "error", err)
				drain, retry = time.After(retry), min(2*retry, kvstore.MaxRetry*first)
			}
		case <-connected:
			drain = time.After(0)
		case <-drain:
			err := c.drain(ctx)
			switch {
			case ctx.Err() != nil:
			case errors.Is(err, nats.ErrConnectionClosed):
				return fmt.Errorf("commands: %w", err)
			case err != nil:
				level := slog.LevelDebug
				if logged != err.Error() {
					level, logged = slog.LevelWarn, err.Error()
				}
				c.o.Log.Log(ctx, level, "cannot read commands, will retry", "node", c.o.Node, "in", retry, "error", err)
				drain, retry = time.After(retry), min(2*retry, kvstore.MaxRetry*first)
			default:
				// Never later than the audit.
				drain, retry, logged = time.After(time.Duration((1-rand.Float64()/4)*float64(audit))), first, ""
			}
		}
	}
}

// accept handles a command that arrived live, unless the server delivered it.
func (c *commands) accept(ctx context.Context, m *nats.Msg) error {
	if isDelivery(m.Reply, m.Header) {
		c.o.Log.Warn("command delivered from a stream rejected", "node", c.o.Node, "subject", m.Subject)
		return nil
	}
	for _, family := range c.families {
		if c.store.Names().Command(family) == m.Subject {
			return c.handle(ctx, Command{ID: m.Header.Get(nats.MsgIdHdr), Family: family, Data: m.Data})
		}
	}

	return nil
}

// drain handles what was queued since the last time.
func (c *commands) drain(ctx context.Context) error {
	if err := c.store.Away(); err != nil {
		return err
	}
	// A family that fails does not hold up the others.
	var failed []error
	for _, family := range c.families {
		if err := c.drainFamily(ctx, family); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", family, err))
		}
	}

	return errors.Join(failed...)
}

// drainFamily makes a consumer only where there is something new, which is rare.
func (c *commands) drainFamily(ctx context.Context, family string) error {
	stream, subject := c.store.Names().Commands(), c.store.Names().Command(family)
	newest, err := c.store.Last(ctx, stream, subject)
	if errors.Is(err, model.ErrNotFound) || (err == nil && newest.Sequence == c.done[family]) {
		return nil
	}
	if err != nil {
		return err
	}
	cfg := jetstream.ConsumerConfig{Name: c.store.Names().CommandConsumer(c.o.Node), FilterSubject: subject}
	if done := c.done[family]; done > 0 && newest.Sequence > done {
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, done+1
	}
	var rejected error
	err = c.store.Drain(ctx, stream, cfg, func(m kvstore.Message) {
		if err := c.handle(ctx, Command{ID: m.Header.Get(nats.MsgIdHdr), Family: family, Data: m.Data, Time: m.Time}); err != nil {
			rejected = cmp.Or(rejected, err)
		}
		// It arrives again, with those behind it.
		if rejected == nil {
			c.done[family] = m.Sequence
		}
	})

	return cmp.Or(err, rejected)
}
