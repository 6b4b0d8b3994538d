package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

const (
	// defaultSilence is the time that a node has to acknowledge a request. Nodes acknowledge at once, but after an outage
	// they reconnect one by one.
	defaultSilence = 7 * time.Second
	// awaySilence is the shorter time for nodes that are stopped, unreachable or unknown.
	awaySilence = 5 * time.Second
	// NoSilence waits for first answers until the context ends.
	NoSilence time.Duration = -1
	// defaultQuiet is the time without answers after which results are also read from reports.
	defaultQuiet = 2 * time.Second
	// completeTime limits the final read of reports, for nodes that have not finished.
	completeTime = 5 * time.Second
	// followAgain is the pause before reports are followed again after an error.
	followAgain = 5 * time.Second
)

// Network carries one request to nodes. Several goroutines may call its methods.
type Network interface {
	// Send sends the request to the nodes of each family. It yields all answers of each node until ctx ends or no more can
	// arrive. awaited are nodes that were connected recently: if one is missing, it may reconnect soon.
	Send(ctx context.Context, families, awaited []string) iter.Seq2[model.EnsureResponse, error]
	// Patience returns the additional time for first answers after the connection was lost, 0 if it was not.
	Patience() time.Duration
	// Await waits for the connection before a batch starts.
	Await(ctx context.Context, batch string) error
}

// Reports yields the stored reports of a request by some nodes. With follow it also yields later ones until ctx ends.
type Reports func(ctx context.Context, nodes []string, follow bool) iter.Seq2[model.Report, error]

// Progress is the progress of a request.
type Progress struct{ Expected, Acknowledged, Finished int }

// Request is a request to many nodes. ID, Network and Targets are required.
type Request struct {
	ID      string
	Network Network
	Targets []fleet.Target
	// Known are the nodes of the fleet.
	Known []model.Node
	// Batches sends the request to some nodes at a time, if set.
	Batches *BatchLimits
	// Timeout limits each batch; 0 is no limit.
	Timeout time.Duration
	// Reports, if set, provides the results of nodes whose agent restarted during the request. Send uses it if no answer
	// arrives for Quiet and a node that acknowledged the request has not finished.
	Reports Reports
	// Protocol is the protocol of the answers in reports.
	Protocol string
	// FirstOnly waits for the first answer of each node only.
	FirstOnly bool
	// Silence is the time for first answers: 0 for 7 seconds, or 5 for a node that was not connected recently.
	Silence time.Duration
	// Quiet is 2 seconds if it is 0.
	Quiet time.Duration
	// OnAnswer, if set, is called for the final answer of each node.
	OnAnswer func(model.EnsureResponse)
	// OnProgress, if set, is called at each change. batch names the batch, empty without batches.
	OnProgress func(batch string, p Progress)
	// OnSilent, if set, is called with the nodes that did not acknowledge the request within Quiet.
	OnSilent func(nodes []string)
	// OnUnread, if set, is called with each error of Reports, which does not fail the request.
	OnUnread func(error)
}

// Send sends the request and collects the answers until all known nodes and all nodes that answered have finished, or
// until ctx ends. The result is not nil if a batch was sent, even with an error.
func (r *Request) Send(ctx context.Context) (*Ensured, error) {
	if r.Batches == nil {
		return r.send(ctx, "", r.Targets)
	}

	return r.sendBatches(ctx, NodesOf(r.Targets, r.Known))
}

// send sends one batch, and reads the results of unfinished nodes from reports at the end.
func (r *Request) send(ctx context.Context, batch string, targets []fleet.Target) (*Ensured, error) {
	limit, cancel := context.WithCancel(ctx)
	if r.Timeout > 0 {
		limit, cancel = context.WithTimeout(ctx, r.Timeout)
	}
	defer cancel()
	isGroup := func(t fleet.Target) bool { return t.Node == "" }
	c := &collection{
		request: r, batch: batch, expected: expectedOf(targets, r.Known), there: map[string]bool{},
		named: !slices.ContainsFunc(targets, isGroup), last: map[string]model.EnsureResponse{},
	}
	for _, n := range r.Known {
		c.there[n.Node] = isThere(n)
	}
	var senders sync.WaitGroup
	answers := make(chan answer)
	senders.Go(func() { r.ask(limit, targets, answers) })
	c.run(limit, answers, &senders)
	cancel()
	senders.Wait()
	out := c.ensured()
	r.complete(ctx, out)

	return out, errors.Join(c.errs...)
}

// complete adds the reported results of unfinished nodes.
func (r *Request) complete(ctx context.Context, out *Ensured) {
	if r.Reports == nil || len(out.Unfinished) == 0 || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	results := NewResults(r.ID, r.Protocol, out.Unfinished)
	if err := results.Read(r.Reports(ctx, out.Unfinished, false), r.OnAnswer); err != nil && r.OnUnread != nil {
		r.OnUnread(err)
	}
	out.Merge(results)
}

// follow sends the results that nodes report until all of them have, or ctx ends. It tries again after errors.
func (r *Request) follow(ctx context.Context, nodes []string, to chan<- model.EnsureResponse) {
	results := NewResults(r.ID, r.Protocol, nodes)
	for ctx.Err() == nil && !results.Complete() {
		err := results.Read(r.Reports(ctx, nodes, true), func(a model.EnsureResponse) {
			select {
			case to <- a:
			case <-ctx.Done():
			}
		})
		if err == nil || ctx.Err() != nil {
			continue
		}
		if r.OnUnread != nil {
			r.OnUnread(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(followAgain):
		}
	}
}

// NodesOf returns the named nodes and the known members of the groups, sorted.
func NodesOf(targets []fleet.Target, known []model.Node) []string {
	return slices.Sorted(maps.Keys(expectedOf(targets, known)))
}

// expectedOf returns the named nodes and the known members of the groups.
func expectedOf(targets []fleet.Target, nodes []model.Node) map[string]bool {
	expected := map[string]bool{}
	for _, t := range targets {
		if t.Node != "" {
			expected[t.Node] = true
			continue
		}
		for _, n := range nodes {
			if t.Includes(n.NodeState) {
				expected[n.Node] = true
			}
		}
	}

	return expected
}

// isThere reports whether a node was connected recently.
func isThere(n model.Node) bool { return !n.Stopped() && !n.Silent }

// answer is an answer, or the error of sending to some targets.
type answer struct {
	model.EnsureResponse
	err error
}

// ask sends to all targets at once: one question for all named nodes, and one for each group. It closes answers when no
// more can arrive, or soon after ctx ended.
func (r *Request) ask(ctx context.Context, targets []fleet.Target, answers chan<- answer) {
	defer close(answers)
	var senders sync.WaitGroup
	defer senders.Wait()
	send := func(whom string, families, awaited []string) {
		senders.Go(func() {
			for a, err := range r.Network.Send(ctx, families, awaited) {
				if err != nil {
					err = fmt.Errorf("ask %s: %w", whom, err)
				}
				select {
				case answers <- answer{a, err}:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	var nodes []fleet.Target
	for _, t := range targets {
		if t.Node != "" {
			nodes = append(nodes, t)
			continue
		}
		send(t.String(), []string{t.String()}, r.awaited(t))
	}
	switch len(nodes) {
	case 0:
	case 1:
		send(nodes[0].String(), []string{nodes[0].String()}, r.awaited(nodes[0]))
	default:
		families := make([]string, len(nodes))
		for i, t := range nodes {
			families[i] = t.String()
		}
		send(fmt.Sprintf("%d nodes", len(nodes)), families, nil)
	}
}

// awaited returns the nodes of a target that were connected recently, none without Silence.
func (r *Request) awaited(t fleet.Target) []string {
	if r.Silence == NoSilence {
		return nil
	}
	var out []string
	for _, n := range r.Known {
		if isThere(n) && t.Includes(n.NodeState) {
			out = append(out, n.Node)
		}
	}

	return out
}

// collection holds the answers to one batch. One goroutine uses it.
type collection struct {
	request  *Request
	batch    string
	expected map[string]bool
	// there are the nodes that were connected recently.
	there map[string]bool
	// named is set if all targets are nodes: answers of other nodes do not count.
	named    bool
	last     map[string]model.EnsureResponse
	finished int
	errs     []error
	// late is set when missing nodes count only if they were connected recently, silent when none of them counts.
	late, silent bool
}

// run collects answers until the batch is complete, no more can arrive, or ctx ends. It adds the reader of reports to
// senders.
func (c *collection) run(ctx context.Context, answers <-chan answer, senders *sync.WaitGroup) {
	r := c.request
	began, silence := time.Now(), cmp.Or(r.Silence, defaultSilence)
	silent := time.NewTimer(min(silence, awaySilence))
	defer silent.Stop()
	if silence < 0 {
		silent.Stop()
	}
	pause := cmp.Or(r.Quiet, defaultQuiet)
	quiet, slow := time.NewTimer(pause), time.NewTimer(pause)
	defer quiet.Stop()
	defer slow.Stop()
	reported := make(chan model.EnsureResponse)
	if r.Reports == nil {
		quiet.Stop()
	}
	c.progress()
	for isReading := false; !c.complete(); {
		select {
		case a, open := <-answers:
			if !open {
				return
			}
			c.add(ctx, a)
			if r.Reports != nil && !isReading {
				quiet.Reset(pause)
			}
		case a := <-reported:
			c.add(ctx, answer{EnsureResponse: a})
		case <-quiet.C:
			if len(c.last) == c.finished {
				quiet.Reset(pause)
				continue
			}
			isReading = true
			nodes := c.open()
			senders.Go(func() { r.follow(ctx, nodes, reported) })
		case <-slow.C:
			if nodes := c.missing(); r.OnSilent != nil && len(nodes) > 0 {
				r.OnSilent(nodes)
			}
		case <-silent.C:
			if more := r.Network.Patience(); more > 0 {
				silent.Reset(more)
				continue
			}
			c.late = true
			if more := silence - time.Since(began); more > 0 {
				silent.Reset(more)
				continue
			}
			c.silent = true
		case <-ctx.Done():
			return
		}
	}
}

// open returns the nodes that have not finished.
func (c *collection) open() []string {
	out := c.missing()
	for node, a := range c.last {
		if !final(a) {
			out = append(out, node)
		}
	}

	return out
}

func (c *collection) add(ctx context.Context, a answer) {
	if a.err != nil {
		if ctx.Err() == nil {
			c.errs = append(c.errs, a.err)
		}
		return
	}
	r := c.request
	before, known := c.last[a.Node]
	if known && (final(before) || r.FirstOnly) || a.ID != "" && a.ID != r.ID || c.named && !c.expected[a.Node] {
		return
	}
	c.last[a.Node] = a.EnsureResponse
	if final(a.EnsureResponse) || r.FirstOnly {
		c.finished++
		if r.OnAnswer != nil {
			r.OnAnswer(a.EnsureResponse)
		}
	}
	c.progress()
}

func (c *collection) progress() {
	if c.request.OnProgress != nil {
		c.request.OnProgress(c.batch, Progress{Expected: max(len(c.expected), len(c.last)), Acknowledged: len(c.last), Finished: c.finished})
	}
}

// complete reports whether every node has finished. If no node is known, unknown nodes have time to answer.
func (c *collection) complete() bool {
	if c.finished < len(c.last) {
		return false
	}
	counts := func(node string) bool { return !c.late || c.there[node] }

	return c.silent || len(c.expected) > 0 && !slices.ContainsFunc(c.missing(), counts)
}

func (c *collection) missing() []string {
	var out []string
	for _, node := range slices.Sorted(maps.Keys(c.expected)) {
		if _, answered := c.last[node]; !answered {
			out = append(out, node)
		}
	}

	return out
}

func (c *collection) ensured() *Ensured {
	out := &Ensured{Answers: []model.EnsureResponse{}, Missing: c.missing()}
	for _, node := range slices.Sorted(maps.Keys(c.last)) {
		out.Answers = append(out.Answers, c.last[node])
		if !final(c.last[node]) {
			out.Unfinished = append(out.Unfinished, node)
		}
	}

	return out
}

// Amount is a number or a percentage of nodes.
type Amount struct {
	count   int
	percent bool
}

// ParseAmount parses a number such as 50, or a percentage such as 10%.
func ParseAmount(text string) (Amount, error) {
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || percent && n > 100 {
		return Amount{}, fmt.Errorf("%q: neither a number of nodes such as 50 nor a percentage such as 10%%", text)
	}

	return Amount{n, percent}, nil
}

// Of returns the amount of a number of nodes, rounded down.
func (a Amount) Of(nodes int) int {
	if a.percent {
		return nodes * a.count / 100
	}

	return a.count
}

// BatchLimits sets the batch size and the tolerated failures.
type BatchLimits struct {
	// Size is the number of nodes of a batch, at least one.
	Size Amount
	// MaxFailures is the number of nodes that may fail before the next batch; nil is any number.
	MaxFailures *Amount
}

// sendBatches sends to all nodes, batch by batch. It stops at an error, when ctx ends, or once more nodes than MaxFailures
// failed, did not answer or did not finish. The result lists the nodes that it did not ask.
func (r *Request) sendBatches(ctx context.Context, nodes []string) (*Ensured, error) {
	size := max(r.Batches.Size.Of(len(nodes)), 1)
	all, out := slices.Collect(slices.Chunk(nodes, size)), &Ensured{Answers: []model.EnsureResponse{}}
	for i, part := range all {
		batch := fmt.Sprintf("batch %d of %d", i+1, len(all))
		if err := r.Network.Await(ctx, batch); err != nil {
			out.NotAsked = slices.Concat(all[i:]...)
			if ctx.Err() != nil {
				err = nil
			}
			return out, err
		}
		result, err := r.send(ctx, batch+": ", fleet.Targets(part, nil, false))
		out.Add(result)
		if err != nil || ctx.Err() != nil || i+1 == len(all) {
			out.NotAsked = slices.Concat(all[i+1:]...)
			return out, err
		}
		if failed := out.Failures(); r.Batches.MaxFailures != nil && failed > r.Batches.MaxFailures.Of(len(nodes)) {
			out.NotAsked = slices.Concat(all[i+1:]...)
			out.Stopped = fmt.Sprintf("stopped after batch %d of %d: %d failed or did not answer, at most %d may", i+1, len(all), failed, r.Batches.MaxFailures.Of(len(nodes)))
			return out, nil
		}
	}

	return out, nil
}
