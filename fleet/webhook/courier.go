package webhook

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"

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
	// lateAfter is the minimum age of a late report.
	lateAfter = time.Minute
	// noticeFor is how long a warning about skipped reports stays.
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
	// late is the minimum age of a late report. The share of its node applies then.
	late time.Duration
	// idle is the time without reports after which a webhook is not late.
	idle time.Duration
	// shares returns the shares of nodes.
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
		all.figures.Change(h.Name, func(*Counts) {})
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

func subscription(h Hook) model.ReportSubscription {
	return model.ReportSubscription{Name: subscriptionPrefix + h.Name, Kinds: h.Kinds, Outcomes: h.Outcomes}
}

// Figures returns the counts of each webhook of the file, also before its first report.
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
	// created is the creation time of the stream that reading.After belongs to.
	created time.Time
	// patience limits the waits for a receiver that rejects reports of a node.
	patience *Shares
	// share limits the reports of each node; leftOut counts the reports that exceeded it.
	share   *Shares
	leftOut int
	// overNotice is the warning about leftOut, lateNotice the one about the age of the current report.
	overNotice, lateNotice notice
	// warned is set after the first warning about an invalid report.
	warned bool
}

// About returns the subject of its notices.
func (c *Courier) About() string { return "webhook " + c.sender.Name }

// locate restarts at the first report if the stream was created again or restored from an older copy, because its
// sequences start again.
func (c *Courier) locate(ctx context.Context) {
	created, last, err := c.stream.Age(ctx)
	if err != nil {
		return // the reader of the stream shows the error
	}
	if !c.created.IsZero() && !created.Equal(c.created) || last < c.reading.After {
		c.reading.All, c.reading.After = true, 0
	}
	c.created = created
}

// Deliver sends reports until ctx ends or they cannot be read.
func (c *Courier) Deliver(ctx context.Context) error {
	c.locate(ctx)
	defer func() { c.lateNotice.change(c.inTime, 0, nil) }()
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
			// The time of storage counts, so nodes lose no reports during an outage of the receiver.
			if !c.share.Take(r.Node, d.Stored) && time.Since(d.Stored) > c.late {
				over++
				continue
			}
			c.begin(d.Stored) // earlier reports of the message may have taken long
			if err := c.send(ctx, d, r); err != nil {
				_ = d.Again(context.WithoutCancel(ctx)) // another server continues at once
				return err
			}
		}
		if over > 0 {
			c.overShare(ctx, d, over)
		}
		// The receiver has accepted the reports, so acknowledge them even if ctx has ended.
		if err := d.Done(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		c.end()
		// If the server forgets the consumer, the next one continues here.
		c.reading.After = d.Sequence
	}

	return nil
}

// send sends a report until the receiver accepts it or it is skipped. It returns the error of ctx or of the connection
// to NATS.
func (c *Courier) send(ctx context.Context, d model.ReportDelivery, r model.Report) error {
	body, err := c.stream.Event(r)
	if err != nil {
		// A node may store any number of invalid reports with any content.
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
				c.share.Take(r.Node, d.Stored) // a retry counts against the share
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
		if asked, is := errors.AsType[AfterError](err); is {
			wait = max(wait, asked.After)
		}
		if err := hold(ctx, d, wait); err != nil {
			return err
		}
		pause = min(2*pause, c.most)
	}
}

func (c *Courier) leaveOut() {
	c.figures.Change(c.sender.Name, func(f *Counts) { f.Refused, f.Failing = f.Refused+1, false })
}

// hold waits, and holds the delivery.
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

// begin shows the age of the report that is sent next.
func (c *Courier) begin(stored time.Time) {
	c.lateNotice.change(func() {
		c.figures.Change(c.sender.Name, func(f *Counts) { f.Sending = stored })
		if age := time.Since(stored); age > c.late {
			c.Show.Warning(c.aboutLate(), fmt.Sprintf("webhook %s is behind: the current report was stored %d min ago", c.sender.Name, int(age.Minutes())))
		} else {
			c.Show.Clear(c.aboutLate())
		}
	}, 0, nil)
}

// end records the end of a report. The warning stays until the next report, which this or another server may send.
func (c *Courier) end() { c.lateNotice.change(func() {}, c.idle, c.inTime) }

func (c *Courier) inTime() {
	c.figures.Change(c.sender.Name, func(f *Counts) { f.Sending = time.Time{} })
	c.Show.Clear(c.aboutLate())
}

func (c *Courier) aboutLate() string { return c.About() + " late" }

// overShare counts and shows n skipped reports of a node that exceeded its share.
func (c *Courier) overShare(ctx context.Context, d model.ReportDelivery, n int) {
	name, node := c.sender.Name, d.Reports[0].Node // all are reports of one node
	c.leftOut += n
	c.figures.Change(name, func(f *Counts) { f.OverShare += uint64(n) })
	c.lines.Log(ctx, c.log, slog.LevelWarn, "webhook leaves out reports of a node that reports too much", "webhook", name, "node", node, "reports", n, "first_sequence", d.Sequence)
	about := c.About() + " share"
	text := fmt.Sprintf("webhook %s left out %d reports of nodes that report too much, last of %s at %s", name, c.leftOut, node, time.Now().Local().Format(model.TimeFormat))
	c.overNotice.change(func() { c.Show.Warning(about, text) }, noticeFor, func() { c.Show.Clear(about) })
}

// notice shows a warning and clears it after a wait. A newer warning cancels the wait.
type notice struct {
	mu sync.Mutex
	// changes counts changes. A timer that has already fired must not undo a later change.
	changes int
	timer   *time.Timer
}

// change calls now, and calls later after a wait. If later is nil, it only calls now.
func (n *notice) change(now func(), wait time.Duration, later func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.timer != nil {
		n.timer.Stop()
	}
	n.changes++
	now()
	if later == nil {
		return
	}
	change := n.changes
	n.timer = time.AfterFunc(wait, func() { n.end(change, later) })
}

// end calls later unless another change came.
func (n *notice) end(change int, later func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changes == change {
		later()
	}
}

// Figures count the reports of webhooks, by name. The zero value is ready. Its methods may be called from several
// goroutines.
type Figures struct {
	mu  sync.Mutex
	all map[string]Counts
}

// Counts are the figures of one webhook since serve started.
type Counts struct {
	// Sent counts accepted reports, Refused counts rejected ones.
	Sent, Refused uint64
	// OverShare counts reports that were skipped because their node reports too much.
	OverShare uint64
	// Failing is set if the last attempt failed.
	Failing bool
	// Sending is when the server stored the current report, zero for none.
	Sending time.Time
}

// Change changes the figures of a webhook.
func (f *Figures) Change(name string, change func(*Counts)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[string]Counts{}
	}
	c := f.all[name]
	change(&c)
	f.all[name] = c
}

// All returns a copy of the figures.
func (f *Figures) All() map[string]Counts {
	f.mu.Lock()
	defer f.mu.Unlock()

	return maps.Clone(f.all)
}

// Shares limit the reports of each node: a number at once, and one more after each interval. The caller passes the time.
// Create them with NewShares.
type Shares struct {
	most  int
	every time.Duration
	nodes map[string]*rate.Limiter
	// prune is the number of nodes that makes Take forget nodes with a full share.
	prune int
}

// minPruned is the number of nodes that Shares remember at least.
const minPruned = 1000

// NewShares returns shares of at most so many reports, which grow by one after each interval.
func NewShares(most int, every time.Duration) *Shares {
	return &Shares{most: most, every: every, nodes: map[string]*rate.Limiter{}, prune: minPruned}
}

// Take takes one report from the share of a node and reports whether there was one left.
func (s *Shares) Take(node string, at time.Time) bool {
	one := s.nodes[node]
	if one == nil {
		s.forget(at)
		one = rate.NewLimiter(rate.Every(s.every), s.most)
		s.nodes[node] = one
	}

	return one.AllowN(at, 1)
}

// forget forgets the nodes with a full share, if there are many nodes.
func (s *Shares) forget(at time.Time) {
	if len(s.nodes) < s.prune {
		return
	}
	for node, one := range s.nodes {
		if one.TokensAt(at) >= float64(s.most) {
			delete(s.nodes, node)
		}
	}
	s.prune = max(2*len(s.nodes), minPruned)
}
