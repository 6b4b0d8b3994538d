package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/choria-io/fisk"
	"github.com/kballard/go-shellquote"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// maxReading limits the time to read the results that are stored.
const maxReading = 2 * time.Minute

// requestCommand is the part that fleet ensure, exec and run share: their flags, and sending, resuming and cancelling a
// request.
type requestCommand struct {
	*cli.Env
	print.Format
	TargetFlags
	Signing
	// batch and maxFailures are texts such as 10 or 20%.
	batch, maxFailures string
	timeout            time.Duration
	// queue is the time to queue the request for unreachable nodes, 0 not to queue it.
	queue time.Duration
	noop  bool
	// resumeID, continueID and cancelID are ids of requests that were sent before.
	resumeID, continueID, cancelID string
	kill                           bool

	// verb is the command below muster fleet, and hasSubcommands is set if resume and cancel are commands below it.
	verb           string
	hasSubcommands bool
	// protocol is the protocol of the answers.
	protocol string
	// did describes nodes that finished, such as "answered".
	did string
	// grace is the additional time to wait for answers.
	grace time.Duration
	// results names the command that shows the results of unfinished nodes.
	results func(*ask.Ensured) string
	// show prints all answers at the end, printAnswer each when it arrives. One of them is set.
	show        func(*ask.Ensured)
	printAnswer func(model.EnsureResponse)
	// queueCommand is the command line that queues the request, for operators that may only do that.
	queueCommand string
}

// addBatches adds the flags of a request that is sent in batches, and can be continued.
func (c *requestCommand) addBatches(cmd *fisk.CmdClause) {
	cmd.Flag("batch", "Ask this many nodes at a time, a number or a percentage: the next ones when these have ended").PlaceHolder("N|P%").StringVar(&c.batch)
	cmd.Flag("max-failures", "With --batch: ask no further nodes once more than this many failed or did not answer").PlaceHolder("N|P%").StringVar(&c.maxFailures)
	cmd.Flag("continue", "Continue the request with this id: send the same request to the targets without a result").PlaceHolder("ID").StringVar(&c.continueID)
}

// addSent adds the flags that show and cancel a request that was sent before.
func (c *requestCommand) addSent(cmd *fisk.CmdClause) {
	cmd.Flag("resume", "Send nothing; show the results of the request with this id, and wait for the results of the targets").PlaceHolder("ID").StringVar(&c.resumeID)
	cmd.Flag("cancel", "Cancel the request with this id on the targets, and show its state there").PlaceHolder("ID").StringVar(&c.cancelID)
}

// addKill adds the flag that ends a request where it is being executed.
func (c *requestCommand) addKill(cmd *fisk.CmdClause) {
	cmd.Flag("kill", "When cancelling: end the request also where it is being executed, as a time-out does").UnNegatableBoolVar(&c.kill)
}

// limits returns the limits of batches, nil without --batch. The error is a usage error.
func (c *requestCommand) limits() (*ask.BatchLimits, error) {
	if c.batch == "" {
		if c.maxFailures != "" {
			return nil, cli.Usagef("--max-failures stops between batches: give --batch too")
		}
		return nil, nil
	}
	size, err := ask.ParseAmount(c.batch)
	if err == nil && size == (ask.Amount{}) {
		err = fmt.Errorf("%q: a batch has at least one node", c.batch)
	}
	if err != nil {
		return nil, cli.Usagef("--batch %w", err)
	}
	out := &ask.BatchLimits{Size: size}
	if c.maxFailures != "" {
		most, err := ask.ParseAmount(c.maxFailures)
		if err != nil {
			return nil, cli.Usagef("--max-failures %w", err)
		}
		out.MaxFailures = &most
	}

	return out, nil
}

// checkID returns the usage error of an invalid id of a request; flag is its flag with a colon, or empty.
func checkID(id, flag string) error {
	if id == "" || !model.IsRequestID(id) {
		return cli.Usagef("%sthe id of a request is one line of at most %d bytes", flag, model.MaxRequestID)
	}

	return nil
}

// outgoing is a request that is ready to be sent.
type outgoing struct {
	id   string
	noop bool
	// check checks the permission to send it; nil to queue the request without that permission.
	check func(*Store) error
	asker func(opened) Asker
}

// openLive connects, checks the permission unless check is nil, and selects the targets.
func (c *requestCommand) openLive(ctx context.Context, check func(*Store) error) (opened, error) {
	return c.open(ctx, c.Env, &c.Signing, func(s *Store) error {
		err := s.KV.Ready(ctx)
		if err == nil && check != nil {
			err = check(s)
		}
		return err
	}, NeedNodes)
}

// send sends a request to the targets and prints the results.
func (c *requestCommand) send(ctx context.Context, out outgoing) error {
	limits, err := c.limits()
	if err == nil && c.Given("continue") {
		err = checkID(c.continueID, "--continue: ")
	}
	if err == nil && limits != nil && c.queue > 0 {
		err = cli.Usagef("--batch and --queue exclude each other: nodes run a queued request when they reconnect")
	}
	if err != nil {
		return err
	}
	to, err := c.openLive(ctx, out.check)
	if err == nil && !c.IsDocument() {
		to.remark(c.Print)
	}
	if err == nil && !out.noop && !c.yes {
		err = to.confirm(c.Env, "sent")
	}
	if err != nil {
		return err
	}
	asker := out.asker(to)
	if c.continueID != "" {
		if to.targets, err = c.withoutResult(ctx, to); err != nil {
			return err
		}
		if len(to.targets) == 0 {
			return c.showResults(ctx, c.continueID)
		}
	}
	if out.check == nil && !to.store.KV.API.InUse().IsOwn() {
		if c.queue == 0 {
			return cli.Usagef("only administrators send requests that nodes answer at once; an operator of the group or node queues one with %s --queue 1h, see muster fleet reports --kind ensure", c.queueCommand)
		}
		return c.queueAll(ctx, asker, to, out.id, c.queue, "queued")
	}
	if len(to.known) > 0 { // otherwise the error is enough
		WarnUnknown(c.Log, to.targets, to.known)
		WarnStopped(c.Log, to.targets, to.known)
	}
	if !c.IsDocument() && (limits != nil || print.IsTerminal(c.Print.Err)) {
		c.Print.Remark("for results from another terminal: %s", c.again("resume", out.id))
	}
	result, err := c.exchange(ctx, asker, to, out.id, limits)
	if err != nil && len(result.NodeStates()) == 0 {
		return err
	}

	return errors.Join(err, c.conclude(ctx, out.id, result, limits != nil), to.undecided)
}

// exchange sends a request and collects the answers. With --queue it queues the request for nodes that do not answer.
func (c *requestCommand) exchange(ctx context.Context, asker Asker, to opened, id string, limits *ask.BatchLimits) (*ask.Ensured, error) {
	line := c.Print.Progress()
	defer line.Clear()
	request := ask.Request{
		ID: id, Network: asker, Targets: to.targets, Known: to.known, Batches: limits, Timeout: c.timeout + c.grace,
		Protocol: c.protocol, Reports: ReportsOf(to.store.KV, id, nil),
		OnAnswer: c.onAnswer(line),
		OnProgress: func(batch string, p ask.Progress) {
			line.Show("%s%d of %s %s, %d working", batch, p.Finished, print.Count(p.Expected, "node"), c.did, p.Acknowledged-p.Finished)
		},
		OnSilent: func(nodes []string) { line.Show("no answer yet from %s", print.Some(nodes, "and others")) },
		OnUnread: func(err error) { c.Log.Debug("cannot read the reports of the request", "error", err) },
	}
	result, err := request.Send(ctx)
	line.Clear()
	if c.queue > 0 && ctx.Err() == nil {
		err = errors.Join(err, asker.queueMissing(ctx, result, id, c.queue, nil))
	}

	return result, err
}

// onAnswer returns a function that prints an answer, unless all are printed at the end.
func (c *requestCommand) onAnswer(line *print.Progress) func(model.EnsureResponse) {
	return func(r model.EnsureResponse) {
		if c.printAnswer != nil && !c.IsDocument() {
			line.Clear()
			c.printAnswer(r)
		}
	}
}

// withoutResult returns the targets that have no result of the continued request.
func (c *requestCommand) withoutResult(ctx context.Context, to opened) ([]fleet.Target, error) {
	all := to.nodes()
	results := ask.NewResults(c.continueID, c.protocol, all)
	limit, done := context.WithTimeout(ctx, maxReading)
	defer done()
	if err := results.Read(c.reports(to.store, c.continueID)(limit, all, false), nil); err != nil {
		return nil, err
	}
	rest := slices.DeleteFunc(all, results.HasAnswer)
	if len(results.Ensured(nil).Answers) == 0 {
		return nil, fmt.Errorf("none of the targets has a result of request %s: not sent; to send it to all targets, omit --continue", print.Text(c.continueID))
	}

	return fleet.Targets(rest, nil, false), nil
}

// queueAll queues a request or a cancel because the account of the operator cannot send requests. It replaces a queued
// request with the same id. what names the queued message.
func (c *requestCommand) queueAll(ctx context.Context, asker Asker, to opened, id string, ttl time.Duration, what string) error {
	out := ask.Ensured{ID: id, Answers: []model.EnsureResponse{}}
	for _, target := range to.targets {
		if err := asker.queue(ctx, target.String(), id, ttl); err != nil {
			return errors.Join(err, to.undecided)
		}
		out.Queued = append(out.Queued, target.String())
	}
	err := c.Print.Result(c.Format, out, func() {
		c.Print.Printf("%s for: %s\n", what, print.Some(out.Queued, "--json has all"))
	})

	return errors.Join(err, to.undecided)
}

// sendsNothing returns the usage error of --continue with a command that sends nothing.
func (c *requestCommand) sendsNothing(other string) error {
	if !c.Given("continue") {
		return nil
	}
	if !c.hasSubcommands {
		other = "--" + other
	}

	return cli.Usagef("--continue sends a request, and %s does not: leave one out", other)
}

// resume shows the results of a request that was sent before.
func (c *requestCommand) resume(ctx context.Context) error {
	if err := c.sendsNothing("resume"); err != nil {
		return err
	}

	return c.showResults(ctx, c.resumeID)
}

// showResults shows the results of the targets from reports, and waits for those that are missing. Without a target it
// shows the stored results.
func (c *requestCommand) showResults(ctx context.Context, id string) error {
	if err := checkID(id, ""); err != nil {
		return err
	}
	ready := func(s *Store) error { return s.KV.Ready(ctx) }
	var to opened
	var err error
	hasTargets := c.HasTargets() || c.Given("on")
	if hasTargets {
		to, err = c.open(ctx, c.Env, nil, ready, NeedReports)
	} else if to.store, err = Open(ctx, c.Env, NeedReports); err == nil {
		err = ready(to.store)
	}
	if err != nil {
		return err
	}
	nodes := to.nodes()
	if hasTargets && len(nodes) == 0 {
		return errors.Join(errors.New("no known node matches (see muster fleet nodes)"), to.undecided)
	}
	results := ask.NewResults(id, c.protocol, nodes)
	line := c.Print.Progress()
	defer line.Clear()
	onAnswer := c.onAnswer(line)
	limit, done := context.WithTimeout(ctx, c.timeout)
	defer done()
	err = results.Read(c.reports(to.store, id)(limit, nodes, hasTargets), func(r model.EnsureResponse) {
		onAnswer(r)
		if p := results.Progress(); hasTargets {
			line.Show("%d of %s answered", p.Finished, print.Count(p.Expected, "node"))
		}
	})
	line.Clear()
	if hasTargets && limit.Err() != nil {
		err = nil
	}
	out := results.Ensured(to.known)
	if err == nil && len(out.NodeStates()) == 0 {
		return fmt.Errorf("no node has reported a result of request %s (see muster fleet reports --kind ensure --json)", print.Text(id))
	}

	return errors.Join(err, to.undecided, c.conclude(ctx, id, out, true))
}

// reports returns the reports of a request. It logs the first invalid report.
func (c *requestCommand) reports(store *Store, id string) ask.Reports {
	isWarned := false
	return ReportsOf(store.KV, id, func(err error) {
		if !isWarned { // a node may publish any number of them
			isWarned = true
			c.Log.Warn("invalid reports are left out", "first", err)
		}
	})
}

// command returns a command line with the targets of this command.
func (c *requestCommand) command(words ...string) string {
	return shellquote.Join(slices.Concat([]string{"muster", "fleet", c.verb}, words, c.Arguments())...)
}

// again returns the command line that resumes or cancels a request.
func (c *requestCommand) again(word, id string) string {
	if !c.hasSubcommands {
		word = "--" + word
	}

	return c.command(word, id)
}

// continueLine returns the command line that sends a request to the remaining nodes.
func (c *requestCommand) continueLine(id string) string {
	if c.hasSubcommands { // properties may be long, and secret
		return "the same command with --continue " + id
	}

	return c.CommandLine("continue", id, "resume")
}

// GroupEqual groups the finished nodes by their answers, largest group first. Answers are equal if outcome, text and
// details are equal.
func GroupEqual(r *ask.Ensured, details func(model.EnsureResponse) []string) []ask.Equal[model.EnsureResponse] {
	return ask.GroupEqual(r.FinishedAnswers(), func(a model.EnsureResponse) (node, key string) {
		return a.Node, strings.Join(append([]string{string(view.OutcomeOf(a)), view.DescribeAnswer(a)}, details(a)...), "\x00")
	})
}

// AnswerSummary counts the answers, and names the nodes without a result. did describes the finished nodes,
// such as "answered".
func AnswerSummary(r *ask.Ensured, did string) string {
	counts := map[model.Outcome]int{}
	states := map[ask.State][]string{}
	for _, a := range r.Answers {
		state := ask.StateOf(a)
		states[state] = append(states[state], a.Node)
		switch {
		case state == ask.StateCancelled:
			counts[model.OutcomeNotRun]++
		case ask.Failed(a):
			counts[model.OutcomeFailed]++
		default:
			counts[view.OutcomeOf(a)]++
		}
	}
	var parts []string
	if finished := len(r.Answers) - len(r.Unfinished); finished > 0 || len(r.Queued) == 0 {
		parts = append(parts, print.Count(finished, "node")+" "+did)
	}
	for _, more := range []struct {
		outcome model.Outcome
		word    string
	}{{model.OutcomeChanged, "changed"}, {model.OutcomeNoop, "would change"}, {model.OutcomeFailed, "failed"}, {model.OutcomeNotRun, "cancelled"}} {
		if counts[more.outcome] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[more.outcome], more.word))
		}
	}
	parts = append(parts, listed(
		nodeList{"still working: ", states[ask.StateRunning]}, nodeList{"accepted, not started: ", states[ask.StateAccepted]},
		nodeList{"no answer from: ", r.Missing}, nodeList{"queued for: ", r.Queued}, nodeList{"no result yet from: ", r.Pending}, nodeList{"not asked: ", r.NotAsked},
	)...)

	return strings.Join(parts, ", ")
}

// nodeList is a list of nodes with its heading.
type nodeList struct {
	text  string
	nodes []string
}

// listed returns the lists that are not empty, each with some of its nodes.
func listed(all ...nodeList) (out []string) {
	for _, l := range all {
		if len(l.nodes) > 0 {
			out = append(out, l.text+print.Some(l.nodes, "--json has all"))
		}
	}

	return out
}

// conclude prints the result of a request, with a table of the states if withStates, and returns its error.
func (c *requestCommand) conclude(ctx context.Context, id string, r *ask.Ensured, withStates bool) error {
	switch {
	case c.IsDocument():
		r.ID, r.States = id, r.NodeStates()
		if err := c.Print.Document(r, c.YAML); err != nil {
			return err
		}
	case c.show != nil:
		c.show(r)
	}
	if withStates && !c.IsDocument() {
		c.printStates(r)
	}
	text := AnswerSummary(r, c.did)
	if len(r.Unfinished) > 0 && ctx.Err() == nil {
		text += c.results(r)
	}
	if r.Stopped != "" {
		text = r.Stopped + "; " + text
	}
	next := ""
	if len(r.NotAsked) > 0 {
		next = "\nto continue with the remaining nodes: " + c.continueLine(id)
	}
	switch {
	case r.OK():
		if !c.IsDocument() {
			c.Print.Remark("%s", text)
		}
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %s; accepted requests continue; for the results run: %s, to cancel: %s%s", context.Cause(ctx), text, c.again("resume", id), c.again("cancel", id), next)
	case len(r.NodeStates()) == 0:
		return errors.New("no node answered, and no known node matches (see muster fleet nodes)")
	default:
		return errors.New(text + next)
	}
}

// printStates prints the number of nodes in each state, and some names.
func (c *requestCommand) printStates(r *ask.Ensured) {
	nodes := map[ask.State][]string{}
	for node, state := range r.NodeStates() {
		nodes[state] = append(nodes[state], node)
	}
	var rows [][]string
	for _, state := range ask.States() {
		if in := nodes[state]; len(in) > 0 {
			slices.Sort(in)
			rows = append(rows, []string{string(state), strconv.Itoa(len(in)), print.Some(in, "--json has all")})
		}
	}
	c.Print.Table([]string{"STATE", "COUNT", "NODES"}, rows, "no node was asked")
}
