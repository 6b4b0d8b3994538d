package webhook

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/telemetry"
)

const (
	// subscriptionPrefix begins the names of the consumers of webhooks.
	subscriptionPrefix = "webhook-"
	// contentTries is how often a report is sent if the receiver rejects it.
	contentTries = 3
	// A webhook sends shareMost reports of a node at once, and one more after each shareEvery.
	shareMost, shareEvery = 2500, time.Second
	// patientEvery is the time after which a webhook waits again for a receiver that rejects a report of a node. Until
	// then it skips rejected reports of the node without waiting.
	patientEvery = 10 * time.Minute
	// lateAfter is the age of a report from which a webhook counts as late.
	lateAfter = time.Minute
	// noticeFor is the time for which a warning about skipped reports is shown.
	noticeFor = time.Hour
)

// Deliverer delivers reports.
type Deliverer interface {
	// Age returns the creation time of the stream and its last sequence.
	Age(ctx context.Context) (created time.Time, last uint64, err error)
	// Deliver yields the messages of a subscription until ctx ends. The last thing it yields is an error, which may wrap
	// model.ErrOtherAccount.
	Deliver(ctx context.Context, sub model.ReportSubscription) iter.Seq2[model.ReportDelivery, error]
	// CheckSubscription returns an error for a subscription that is invalid.
	CheckSubscription(sub model.ReportSubscription) error
	// Event returns a report as a CloudEvent in JSON.
	Event(r model.Report) ([]byte, error)
}

// Notices shows problems and warnings by subject, until they are cleared.
type Notices interface {
	Problem(about, text string)
	Warning(about, text string)
	Clear(about string)
}

// Webhooks send reports to the receivers of a file.
type Webhooks struct {
	senders []*Sender
	figures Figures
	// first and most are the shortest and the longest pause before a report is sent again.
	first, most time.Duration
	// late is the age of a report from which the webhook counts as late, and from which the quota of its node applies.
	late time.Duration
	// idle is the time without reports after which a webhook is not late.
	idle time.Duration
	// shares returns the quotas of nodes.
	shares func() *Shares
}

// NewWebhooks returns the webhooks that a file with a name and content lists, none for nil.
func NewWebhooks(name string, data []byte) (*Webhooks, error) {
	all := &Webhooks{first: time.Second, most: time.Minute, late: lateAfter, idle: model.ReportHold, shares: func() *Shares { return NewShares(shareMost, shareEvery) }}
	if data == nil {
		return all, nil
	}
	hooks, err := Parse(name, data)
	if err != nil {
		return nil, err
	}
	for _, h := range hooks {
		s, err := NewSender(h)
		if err != nil {
			return nil, err
		}
		all.senders = append(all.senders, s)
	}

	return all, nil
}

// Check returns an error if the stream has no reports that a webhook selects.
func (w *Webhooks) Check(stream Deliverer) error {
	for _, s := range w.senders {
		if err := stream.CheckSubscription(subscription(s.Hook)); err != nil {
			return fmt.Errorf("webhook %s: %w", s.Name, err)
		}
	}

	return nil
}

// subscription returns the subscription of a webhook.
func subscription(h Hook) model.ReportSubscription {
	return model.ReportSubscription{Name: subscriptionPrefix + h.Name, Kinds: h.Kinds, Outcomes: h.Outcomes}
}

// Figures returns the counts of each webhook.
func (w *Webhooks) Figures() map[string]Counts { return w.figures.All() }

// Close closes the connections to receivers.
func (w *Webhooks) Close() {
	for _, s := range w.senders {
		s.Close()
	}
}

// Couriers returns a courier for each webhook. show returns where its notices are shown. If all is set, a webhook that
// has not read yet starts with the oldest report.
func (w *Webhooks) Couriers(stream Deliverer, show func(webhook string) Notices, log *slog.Logger, all bool) []*Courier {
	out := make([]*Courier, len(w.senders))
	for i, s := range w.senders {
		out[i] = &Courier{Webhooks: w, Show: show(s.Name), sender: s, stream: stream, log: log, reading: subscription(s.Hook), share: w.shares(), patience: NewShares(1, patientEvery)}
		out[i].reading.All = all
	}

	return out
}

// Courier sends the reports of one webhook.
type Courier struct {
	*Webhooks
	Show    Notices
	sender  *Sender
	stream  Deliverer
	log     *slog.Logger
	lines   telemetry.RateLimitedLog
	reading model.ReportSubscription
	// created is since when there is the stream that reading.After is of.
	created time.Time
	// patience is how often it waits for a receiver that refuses reports of a node.
	patience *Shares
	// share is what it sends of each node; leftOut is how many reports it did not send because of that.
	share   *Shares
	leftOut int
	// overNotice says so.
	overNotice timedWarning
	lateness   lateness
	// warned is that the log has the first report that is no event.
	warned bool
}

// About returns the subject of its notices.
func (c *Courier) About() string { return "webhook " + c.sender.Name }

// locate has a stream that was created again, or restored from an older copy, be read from its beginning:
// it counts anew, so nothing of it is behind what was done of the one before.
func (c *Courier) locate(ctx context.Context) {
	created, last, err := c.stream.Age(ctx)
	if err != nil {
		return // what reads the stream says why it cannot be read
	}
	if !c.created.IsZero() && !created.Equal(c.created) || last < c.reading.After {
		c.reading.All, c.reading.After = true, 0
	}
	c.created = created
}

// Deliver sends reports until ctx ends or they cannot be read.
func (c *Courier) Deliver(ctx context.Context) error {
	c.locate(ctx)
	defer c.leave()
	for d, err := range c.stream.Deliver(ctx, c.reading) {
		if errors.Is(err, model.ErrOtherAccount) {
			c.log.Error("webhook has nothing to send", "webhook", c.sender.Name, "error", err)
			c.Show.Problem(c.About(), fmt.Sprintf("webhook %s has nothing to send: %s", c.sender.Name, err))
			return nil
		}
		if err != nil {
			return err
		}
		c.begin(d.Stored)
		over := 0
		for _, r := range d.Reports {
			if !c.sender.Matches(r) {
				continue
			}
			// By when it was stored, so that nodes lose nothing while the receiver is away.
			if !c.share.Take(r.Node, d.Stored) && time.Since(d.Stored) > c.late {
				over++
				continue
			}
			c.begin(d.Stored) // those before it may have taken long
			if err := c.send(ctx, d, r); err != nil {
				_ = d.Again(context.WithoutCancel(ctx)) // another serve goes on at once
				return err
			}
		}
		if over > 0 {
			c.overShare(ctx, d, over)
		}
		// What the receiver took is done, even where ctx ended meanwhile: else it had it twice.
		if err := d.Done(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		c.end()
		// Should the server forget the consumer, this is where another one goes on.
		c.reading.After = d.Sequence
	}

	return nil
}

// send sends a report until the receiver took it, or it is left out. The error is that of ctx, or of the
// connection to NATS.
func (c *Courier) send(ctx context.Context, d model.ReportDelivery, r model.Report) error {
	body, err := c.stream.Event(r)
	if err != nil {
		// A node may store any number of them, and write into them what it likes.
		if !c.warned {
			c.warned = true
			c.log.Warn("reports that are no events of muster are left out of a webhook", "webhook", c.sender.Name, "first_node", r.Node, "first_sequence", d.Sequence)
		}
		c.leaveOut()
		return nil
	}
	name := c.sender.Name
	pause, refusals, failing, waits := c.first, 0, time.Time{}, false
	for {
		if err := d.Hold(); err != nil {
			return err
		}
		err := c.sender.Send(ctx, time.Now(), r.ID, body)
		if errors.Is(err, ErrContent) {
			if refusals++; refusals == 1 {
				waits = c.patience.Take(r.Node, time.Now())
			} else {
				c.share.Take(r.Node, d.Stored) // it takes a place of another report
			}
		}
		switch {
		case err == nil:
			c.Show.Clear(c.About())
			c.figures.Change(name, func(f *Counts) { f.Sent, f.Failing = f.Sent+1, false })
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case refusals >= contentTries:
			c.lines.Log(ctx, c.log, slog.LevelError, "webhook does not take a report, it is left out", "webhook", name, "report", r.ID, "node", r.Node, "kind", r.Kind, "error", err)
			c.Show.Clear(c.About())
			c.leaveOut()
			return nil
		case errors.Is(err, ErrContent) && !waits:
			continue
		}
		c.figures.Change(name, func(f *Counts) { f.Failing = true })
		if failing.IsZero() {
			failing = time.Now()
			c.lines.Log(ctx, c.log, slog.LevelWarn, "webhook cannot be delivered, will retry", "webhook", name, "report", r.ID, "error", err)
		}
		c.Show.Problem(c.About(), fmt.Sprintf("webhook %s cannot be delivered since %s: %s", name, failing.Local().Format(model.TimeFormat), err))
		wait := pause
		var asked AfterError
		if errors.As(err, &asked) {
			wait = max(wait, asked.After)
		}
		if err := hold(ctx, d, wait); err != nil {
			return err
		}
		pause = min(2*pause, c.most)
	}
}

// leaveOut counts a report that nobody can have, or that the receiver does not take.
func (c *Courier) leaveOut() {
	c.figures.Change(c.sender.Name, func(f *Counts) { f.Refused, f.Failing = f.Refused+1, false })
}

// hold waits, and keeps the message for this reader meanwhile.
func hold(ctx context.Context, d model.ReportDelivery, wait time.Duration) error {
	for wait > 0 {
		part := min(wait, model.ReportHold/3)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(part):
		}
		if err := d.Hold(); err != nil {
			return err
		}
		wait -= part
	}

	return nil
}
