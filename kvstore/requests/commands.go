package requests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// Command is a queued request.
type Command struct {
	// ID is the id given to PutCommand. A command may arrive more than once.
	ID string
	// Family is node.<node> or group.<group>.
	Family string
	// Data is an ensure request.
	Data []byte
	// Time is the time of the put.
	Time time.Time
	// Sender is the self-declared sender, or nil.
	Sender *model.Sender
	// Refused is the reason to reject the command. Then Data is empty.
	Refused error
}

const maxToken = 512

// PutCommand queues a request for the nodes of a family, including unreachable nodes. The request
// expires after ttl, in whole seconds between one second and kvstore.MaxCommandTTL. A second request
// with the same id replaces the first, and nodes execute an id once. The error wraps
// model.ErrInvalidName or model.ErrTooLarge.
func (s Client) PutCommand(ctx context.Context, family, id string, request []byte, ttl time.Duration) error {
	if err := model.CheckFamily(family); err != nil {
		return err
	}
	switch {
	case id == "":
		return fmt.Errorf("%w: a command needs an id", model.ErrInvalidName)
	case len(kvstore.Token(id)) > maxToken:
		return fmt.Errorf("%w: the id of a command has %d bytes", model.ErrTooLarge, len(id))
	case ttl > kvstore.MaxCommandTTL:
		return fmt.Errorf("%w: the time to live of a command is %s, at most %s", model.ErrTooLarge, ttl, kvstore.MaxCommandTTL)
	}
	m := kvstore.NewMsg(s.store.Names.Command(family, kvstore.Token(id)), request)
	kvstore.SetSender(m, s.sender)
	if _, err := s.store.Publish(ctx, m, jetstream.WithMsgTTL(kvstore.WholeSeconds(ttl))); err != nil {
		return fmt.Errorf("put command for %s: %w", family, err)
	}

	return nil
}

// CommandOptions configure Client.Commands.
type CommandOptions struct {
	Node   string
	Groups []string
	// Audit is the longest time until a lost announcement is noticed. The default is 5 minutes.
	Audit time.Duration
	// Retry is the first pause after a failure. The default is 1 second, and the longest pause is 30
	// times Retry.
	Retry time.Duration
	// Log receives messages for administrators.
	Log *slog.Logger
}

// Commands calls handle with each command for the node. At the start and after each reconnect it reads
// the queued commands, then it follows new ones. A command may arrive twice, so handle must check its
// id. handle must return soon, and calls do not overlap. If handle returns an error, the command
// arrives again after Retry. Commands returns nil when the context ends. Otherwise the error wraps
// model.ErrInvalidName or comes from the connection.
func (s Client) Commands(ctx context.Context, o CommandOptions, handle func(context.Context, Command) error) error {
	if err := model.CheckNode(o.Node, o.Groups); err != nil {
		return err
	}
	c := &commands{store: s.store, o: o, handle: handle, live: make(chan *nats.Msg, liveCommands)}
	connected := s.store.Conn.StatusChanged(nats.CONNECTED)
	defer s.store.Conn.RemoveStatusListener(connected)
	for _, family := range model.Families(o.Node, o.Groups) {
		sub, err := s.store.Conn.ChanSubscribe(s.store.Names.CommandQueued(family, ">"), c.live)
		if err != nil {
			return fmt.Errorf("commands: %w", err)
		}
		defer func() { _ = sub.Unsubscribe() }()
		c.queues = append(c.queues, &queue{family: family, dropped: sub.Dropped, handled: map[string]uint64{}})
	}

	return c.run(ctx, connected)
}

// liveCommands is the number of announcements that wait while a command is handled. The audit finds
// dropped ones.
const liveCommands = 1024

type commands struct {
	store  *kvstore.Store
	o      CommandOptions
	handle func(context.Context, Command) error
	// live receives the headers that the server republished.
	live   chan *nats.Msg
	queues []*queue
}

type queue struct {
	family string
	// newest and stored are the sequence and the time of the last command when all were handled. The
	// time detects a recreated stream, which counts from 1 again. handled holds the handled sequences
	// by subject.
	newest  uint64
	stored  time.Time
	handled map[string]uint64
	// again reports that announcements may be lost. Then drain reads handled commands again.
	again bool
	// dropped returns the number of announcements that did not fit into live. lost is the last seen
	// number.
	dropped func() (int, error)
	lost    int
}

// noteLost records new losses of announcements.
func (q *queue) noteLost() {
	if lost, err := q.dropped(); err == nil && lost != q.lost {
		q.lost, q.again = lost, true
	}
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
			for _, q := range c.queues {
				q.again = true
			}
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
				c.o.Log.Log(ctx, level, "cannot read commands, will retry", "node", c.o.Node, "in", retry, "error", kvstore.DenialWithRemedy(err, c.o.Node, c.o.Groups))
				drain, retry = time.After(retry), min(2*retry, kvstore.MaxRetry*first)
			default:
				if logged != "" && logged != nats.ErrDisconnected.Error() {
					c.o.Log.Info("reading commands again", "node", c.o.Node)
				}
				// The next check is never later than the audit.
				drain, retry, logged = time.After(time.Duration((1-rand.Float64()/4)*float64(audit))), first, ""
			}
		}
	}
}

// accept reads and handles an announced command. It uses only the subject, because other clients can
// make the server send messages there.
func (c *commands) accept(ctx context.Context, m *nats.Msg) error {
	names := c.store.Names
	for _, q := range c.queues {
		token, ok := strings.CutPrefix(m.Subject, names.CommandQueued(q.family, ""))
		if !ok || strings.ContainsAny(token, "*>") {
			continue
		}
		var found *kvstore.Message
		err := kvstore.UntilCurrent(ctx, func(last bool) (bool, error) {
			var err error
			found, err = read(ctx, c.store, names.Command(q.family, token))
			return last || found != nil && found.Sequence >= kvstore.RepublishedSequence(m), err
		})
		if err == nil && found != nil {
			err = c.do(ctx, q, *found)
		}
		if err != nil {
			// It may replace a handled command.
			q.again = true
			return err
		}
	}

	return nil
}

// read returns the message of a command, or nil if there is none. A message with unreadable headers is Forged.
func read(ctx context.Context, s *kvstore.Store, subject string) (*kvstore.Message, error) {
	m, found, err := s.Find(ctx, s.Names.Commands, subject)
	if err != nil || !found || m.Deleted() && !m.Forged {
		return nil, err
	}

	return &m, nil
}

// do handles a command unless it was handled before.
func (c *commands) do(ctx context.Context, q *queue, m kvstore.Message) error {
	id, ok := kvstore.TokenID(strings.TrimPrefix(m.Subject, c.store.Names.Command(q.family, "")))
	if sequence, handled := q.handled[m.Subject]; handled && sequence == m.Sequence {
		return nil
	}
	command := Command{ID: id, Family: q.family, Data: m.Data, Time: m.Time, Sender: kvstore.SenderOf(m.Header)}
	switch {
	case !ok:
		command.Refused = fmt.Errorf("%w: %s", model.ErrInvalidName, m.Subject)
	case m.Forged:
		command.Refused = m.Refusal()
	}
	if command.Refused != nil {
		command.Data = nil
	}
	if err := c.handle(ctx, command); err != nil {
		return err
	}
	q.handled[m.Subject] = m.Sequence

	return nil
}

// drain handles the commands that were queued since the last drain.
func (c *commands) drain(ctx context.Context) error {
	if err := c.store.Away(); err != nil {
		return err
	}
	// A failing family must not delay the others.
	var failed []error
	for _, q := range c.queues {
		q.noteLost()
		if err := c.drainQueue(ctx, q); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", q.family, err))
		}
	}

	return kvstore.JoinDenials(failed)
}

// drainQueue handles the new commands of a family in the order of their puts. It lists the family only
// if the newest command is new, which is rare. If the headers of the newest command are unreadable, it
// lists the family each time.
func (c *commands) drainQueue(ctx context.Context, q *queue) error {
	stream, all := c.store.Names.Commands, c.store.Names.Command(q.family, ">")
	newest, err := c.store.Last(ctx, stream, all)
	switch {
	case errors.Is(err, model.ErrNotFound):
		clear(q.handled)
		return nil
	case errors.Is(err, kvstore.ErrUnreadable): // the list below finds it
	case err != nil:
		return err
	case newest.Sequence == q.newest && newest.Time.Equal(q.stored):
		return nil
	}
	listed, err := c.store.Subjects(ctx, stream, all)
	if err != nil {
		return err
	}
	maps.DeleteFunc(q.handled, func(subject string, _ uint64) bool { return !listed.Subjects[subject] })
	var waiting []kvstore.Message
	for subject := range listed.Subjects {
		if _, handled := q.handled[subject]; handled && !q.again {
			continue
		}
		m, err := read(ctx, c.store, subject)
		if err != nil {
			return err
		}
		if m != nil {
			waiting = append(waiting, *m)
		}
	}
	slices.SortFunc(waiting, func(a, b kvstore.Message) int { return cmp.Compare(a.Sequence, b.Sequence) })
	// A rejected command must not delay the others.
	var rejected error
	for _, m := range waiting {
		rejected = cmp.Or(rejected, c.do(ctx, q, m))
	}
	if rejected == nil && listed.Last >= newest.Sequence {
		q.newest, q.stored, q.again = newest.Sequence, newest.Time, false
	}

	return rejected
}

// Queued returns the queued requests with an id, by family. It skips unreadable requests, which nodes
// never execute. The error wraps model.ErrNotFound if the stream does not exist.
func (s Client) Queued(ctx context.Context, id string) (map[string][]byte, error) {
	names, token := s.store.Names, kvstore.Token(id)
	listed, err := s.store.Subjects(ctx, names.Commands, names.Command("*.*", token))
	if err != nil {
		return nil, err
	}
	before, _, _ := strings.Cut(names.Command("*.*", token), "*")
	out := map[string][]byte{}
	for subject := range listed.Subjects {
		family := strings.TrimSuffix(strings.TrimPrefix(subject, before), "."+token)
		if model.CheckFamily(family) != nil {
			continue
		}
		m, err := read(ctx, s.store, subject)
		switch {
		case err != nil:
			return nil, err
		case m != nil && !m.Forged:
			out[family] = m.Data
		}
	}

	return out, nil
}
