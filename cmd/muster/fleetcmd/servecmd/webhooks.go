package servecmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/fleet/webhook"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/telemetry"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
)

const (
	// maxWebhooksFile bounds the file of webhooks.
	maxWebhooksFile = 1 << 20
	// subscriptionPrefix begins the names of the consumers of webhooks.
	subscriptionPrefix = "webhook-"
	// contentTries is how often a report is sent that the receiver does not take.
	contentTries = 3
	// shareMost is how many reports of one node a webhook has at once, shareEvery after how long one more.
	shareMost, shareEvery = 2500, time.Second
	// patientEvery is after how long a webhook waits again until the receiver takes a report of a node that it
	// refuses: it may be because of the report alone.
	patientEvery = 10 * time.Minute
	// lateAfter is how old a report is when a webhook is behind.
	lateAfter = time.Minute
)

// webhooks send reports as they are stored.
type webhooks struct {
	senders []*webhook.Sender
	figures webhook.Figures
	// first and most are the pauses before a report is sent again.
	first, most time.Duration
	// late is how old a report is when the webhook is behind, and the share of its node decides whether it is sent.
	late time.Duration
	// idle is after how long without a report it is in time.
	idle time.Duration
	// shares returns the shares of nodes.
	shares func() *webhook.Shares
}

// loadWebhooks reads the file of --webhooks, which others may not change: it says who gets the reports.
// Without one there are none.
func loadWebhooks(path string) (*webhooks, error) {
	all := &webhooks{first: time.Second, most: time.Minute, late: lateAfter, idle: kvstore.SubscriptionHold, shares: func() *webhook.Shares { return webhook.NewShares(shareMost, shareEvery) }}
	if path == "" {
		return all, nil
	}
	data, err := files.ReadTrusted(path, maxWebhooksFile, paths.Author{})
	if err != nil {
		return nil, cli.Usagef("--webhooks: %w", cli.FileError("file of webhooks", path, err))
	}
	hooks, err := webhook.Parse(path, data)
	if err != nil {
		return nil, err
	}
	for _, h := range hooks {
		s, err := webhook.NewSender(h)
		if err != nil {
			return nil, err
		}
		all.senders = append(all.senders, s)
	}

	return all, nil
}

// check returns what is wrong with what webhooks read.
func (w *webhooks) check(stream kvstore.Reports) error {
	for _, s := range w.senders {
		if err := stream.CheckSubscription(subscription(s.Hook)); err != nil {
			return cli.Usagef("--webhooks: webhook %s: %w", s.Name, err)
		}
	}

	return nil
}

// subscription returns what a webhook reads.
func subscription(h webhook.Hook) kvstore.ReportSubscription {
	return kvstore.ReportSubscription{Name: subscriptionPrefix + h.Name, Kinds: h.Kinds, Outcomes: h.Outcomes}
}

// close ends the connections.
func (w *webhooks) close() {
	for _, s := range w.senders {
		s.Close()
	}
}

// couriers returns one for each webhook, which shows its notices where show says. With all, one that nobody has read for yet begins with the
// oldest report.
func (w *webhooks) couriers(stream kvstore.Reports, show func(webhook string) warnings, log *slog.Logger, all bool) []*courier {
	out := make([]*courier, len(w.senders))
	for i, s := range w.senders {
		out[i] = &courier{webhooks: w, sender: s, stream: stream, show: show(s.Name), log: log, reading: subscription(s.Hook), share: w.shares(), patience: webhook.NewShares(1, patientEvery)}
		out[i].reading.All = all
	}

	return out
}

// notices show what is wrong until it is well.
type notices interface {
	Problem(about, text string)
	Clear(about string)
}

// warnings are notices of what is late, or incomplete.
type warnings interface {
	notices
	Warning(about, text string)
}

// courier sends what one webhook is to have.
type courier struct {
	*webhooks
	sender  *webhook.Sender
	stream  kvstore.Reports
	show    warnings
	log     *slog.Logger
	lines   telemetry.RateLimitedLog
	reading kvstore.ReportSubscription
	// created is since when there is the stream that reading.After is of.
	created time.Time
	// patience is how often it waits for a receiver that refuses reports of a node.
	patience *webhook.Shares
	// share is what it sends of each node; leftOut is how many reports it did not send because of that.
	share   *webhook.Shares
	leftOut int
	// overNotice says so.
	overNotice timedWarning
	lateness   lateness
	// warned is that the log has the first report that is no event.
	warned bool
}

// about is what its notices are about.
func (c *courier) about() string { return "webhook " + c.sender.Name }

// locate has a stream that was created again, or restored from an older copy, be read from its beginning:
// it counts anew, so nothing of it is behind what was done of the one before.
func (c *courier) locate(ctx context.Context) {
	created, last, err := c.stream.Age(ctx)
	if err != nil {
		return // what reads the stream says why it cannot be read
	}
	if !c.created.IsZero() && !created.Equal(c.created) || last < c.reading.After {
		c.reading.All, c.reading.After = true, 0
	}
	c.created = created
}

// deliver sends reports until ctx ends or they cannot be read.
func (c *courier) deliver(ctx context.Context) error {
	c.locate(ctx)
	defer c.leave()
	for d, err := range c.stream.Deliver(ctx, c.reading) {
		if errors.Is(err, kvstore.ErrOtherAccount) {
			c.log.Error("webhook has nothing to send", "webhook", c.sender.Name, "error", err)
			c.show.Problem(c.about(), fmt.Sprintf("webhook %s has nothing to send: %s", c.sender.Name, err))
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
func (c *courier) send(ctx context.Context, d kvstore.ReportDelivery, r model.Report) error {
	body, err := kvstore.EncodeEvent(r)
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
		if errors.Is(err, webhook.ErrContent) {
			if refusals++; refusals == 1 {
				waits = c.patience.Take(r.Node, time.Now())
			} else {
				c.share.Take(r.Node, d.Stored) // it takes a place of another report
			}
		}
		switch {
		case err == nil:
			c.show.Clear(c.about())
			c.figures.Change(name, func(f *webhook.Counts) { f.Sent, f.Failing = f.Sent+1, false })
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case refusals >= contentTries:
			c.lines.Log(ctx, c.log, slog.LevelError, "webhook does not take a report, it is left out", "webhook", name, "report", r.ID, "node", r.Node, "kind", r.Kind, "error", err)
			c.show.Clear(c.about())
			c.leaveOut()
			return nil
		case errors.Is(err, webhook.ErrContent) && !waits:
			continue
		}
		c.figures.Change(name, func(f *webhook.Counts) { f.Failing = true })
		if failing.IsZero() {
			failing = time.Now()
			c.lines.Log(ctx, c.log, slog.LevelWarn, "webhook cannot be delivered, will retry", "webhook", name, "report", r.ID, "error", err)
		}
		c.show.Problem(c.about(), fmt.Sprintf("webhook %s cannot be delivered since %s: %s", name, clock(failing), err))
		wait := pause
		var asked webhook.AfterError
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
func (c *courier) leaveOut() {
	c.figures.Change(c.sender.Name, func(f *webhook.Counts) { f.Refused, f.Failing = f.Refused+1, false })
}

// hold waits, and keeps the message for this reader meanwhile.
func hold(ctx context.Context, d kvstore.ReportDelivery, wait time.Duration) error {
	for wait > 0 {
		part := min(wait, kvstore.SubscriptionHold/3)
		if err := kvstore.Pause(ctx, part); err != nil {
			return err
		}
		if err := d.Hold(); err != nil {
			return err
		}
		wait -= part
	}

	return nil
}
