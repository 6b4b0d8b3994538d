package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// pingCommand implements muster fleet ping.
type pingCommand struct {
	*cli.Env
	print.Format
	TargetFlags
	timeout time.Duration
}

// addPing adds the command to muster fleet.
func addPing(env *cli.Env, parent *fisk.CmdClause) {
	c := &pingCommand{Env: env}
	cmd := parent.Command("ping", "Ping nodes, and show the response times")
	cmd.HelpLong("Pings the agents of the targets, by default of all nodes, and prints each answer at once. It waits for named and known nodes (see muster fleet nodes), except for stopped ones. Exits with code 0 if at least one node and every expected node answered.\n\n" +
		"  muster fleet ping\n  muster fleet ping web01\n  muster fleet ping --group web --timeout 2s\n  muster fleet ping --on 'state != \"ok\"'")
	cli.NodesVar(cmd.Arg("node", "Nodes to ping").HintAction(env.CompleteNodes), &c.nodes)
	c.AddTargets(env, cmd)
	c.AddOn(cmd)
	cmd.Flag("timeout", "Maximum time to wait for answers").Default("5s").DurationVar(&c.timeout)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

func (c *pingCommand) run(ctx context.Context) error {
	if c.timeout <= 0 {
		return cli.Usagef("--timeout must be more than 0")
	}
	if !c.HasTargets() && !c.Given("on") {
		c.all = true
	}
	found, err := c.open(ctx, c.Env, nil, func(s *Store) error {
		err := s.KV.Ready(ctx)
		if err == nil && !s.KV.API.InUse().IsOwn() {
			err = cli.Usagef("only administrators can ping nodes; to see when each was last heard, run %s", s.KV.Names.Run("fleet nodes"))
		}
		return err
	}, NeedNodes)
	if err != nil {
		return err
	}
	running := slices.DeleteFunc(slices.Clone(found.known), func(n model.Node) bool { return n.Stopped() })
	isTarget := func(string) bool { return true }
	if found.expression != nil { // the ping reaches all nodes, but only these answers count
		names := found.names()
		isTarget = func(node string) bool { return names[node] }
		running = slices.DeleteFunc(running, func(n model.Node) bool { return !names[n.Node] })
		found.targets = fleet.Targets(nil, nil, true)
	}
	WarnUnknown(c.Log, found.targets, found.known)
	limit, done := context.WithTimeout(ctx, c.timeout)
	defer done()
	began, pinged := time.Now(), Pinged{Answers: []Pong{}}
	request := ask.Request{Network: pinger(found.store.KV, c.Log), Targets: found.targets, Known: running, FirstOnly: true, Silence: ask.NoSilence, OnAnswer: func(r model.EnsureResponse) {
		if !isTarget(r.Node) {
			return
		}
		p := Pong{Node: r.Node, Took: model.Duration(time.Since(began))}
		if pinged.Answers = append(pinged.Answers, p); !c.IsDocument() {
			c.Print.Printf("%s  %s\n", print.Text(p.Node), took(p))
		}
	}}
	result, err := request.Send(limit)
	pinged.Missing = result.Missing
	if c.IsDocument() {
		err = errors.Join(err, c.Print.Document(pinged, c.YAML))
	}
	if err != nil {
		return err
	}

	return errors.Join(c.conclude(ctx, pinged, limit.Err() == nil), found.undecided)
}

// took formats the response time.
func took(p Pong) string { return p.Took.Std().Round(10 * time.Microsecond).String() }

// conclude prints the number of answers and returns the error of the ping. ended reports whether the ping
// ended before its timeout because no connection listens for the missing nodes.
func (c *pingCommand) conclude(ctx context.Context, p Pinged, ended bool) error {
	text := print.Count(len(p.Answers), "node") + " answered"
	if n := len(p.Answers); n > 0 {
		// Answers are sorted by time.
		text += fmt.Sprintf(", half of them within %s, all within %s", took(p.Answers[(n-1)/2]), took(p.Answers[n-1]))
	}
	switch {
	case ctx.Err() != nil && len(p.Missing) > 0:
		return fmt.Errorf("%w: %s; no answer yet from: %s", context.Cause(ctx), text, print.Some(p.Missing, "--json has all"))
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %s", context.Cause(ctx), text)
	case ended && len(p.Missing) > 0:
		return fmt.Errorf("%s; no connected agent listens for: %s (is muster agent running there?)", text, print.Some(p.Missing, "--json has all"))
	case len(p.Missing) > 0:
		return fmt.Errorf("%s; no answer within %s from: %s", text, c.timeout, print.Some(p.Missing, "--json has all"))
	case ended && len(p.Answers) == 0:
		return errors.New("no connected agent listens, and no known node matches (see muster fleet nodes)")
	case len(p.Answers) == 0:
		return fmt.Errorf("no node answered within %s, and no known node matches (see muster fleet nodes)", c.timeout)
	case !c.IsDocument():
		c.Print.Remark("%s", text)
	}

	return nil
}

// Pong is the answer of one node.
type Pong struct {
	Node string `json:"node"`
	// Took is the time from the request to the answer.
	Took model.Duration `json:"took"`
}

// Pinged is the result of a ping.
type Pinged struct {
	// Answers are in the order of their arrival.
	Answers []Pong `json:"answers"`
	// Missing are the nodes that did not answer, by name.
	Missing []string `json:"missing,omitempty"`
}

// pinger returns the asker of a ping.
func pinger(store *kvstore.Store, log *slog.Logger) Asker {
	return Asker{
		Store: store, Log: log, Verb: kvstore.VerbPing,
		Encode: func(context.Context, string, time.Time) ([]byte, error) { return nil, nil },
		Decode: func([]byte) (model.EnsureResponse, error) { return model.EnsureResponse{}, nil },
	}
}
