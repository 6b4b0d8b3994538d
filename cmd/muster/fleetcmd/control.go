package fleetcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/targets"
)

// controlCommand is the part that the commands that write control documents share.
type controlCommand struct {
	*cli.Env
	print.Format
	TargetFlags
	Signing
	// refusesUnknown refuses unknown nodes and asks for confirmation of unknown groups, unless yes.
	refusesUnknown bool
	// timeout limits the wait for confirmations; 0 does not wait.
	timeout time.Duration
}

// add adds the flags that select nodes; hasGroups adds --group and --all.
func (c *controlCommand) add(env *cli.Env, cmd *fisk.CmdClause, hasGroups bool) {
	c.Env = env
	help := targetHelp{node: "Target node; repeatable"}
	c.remedy = "name nodes, or give --on EXPR"
	if hasGroups {
		help.group, help.all = "Target group, with the nodes that join it later; repeatable", "Target all nodes, with those that join later"
		c.remedy = "name nodes, or give --group GROUP, --on EXPR or --all"
	}
	c.TargetFlags.add(env, cmd, help)
	c.addYes(cmd)
	c.AddOn(cmd)
}

// addWait adds the flags of a change that nodes confirm.
func (c *controlCommand) addWait(cmd *fisk.CmdClause) {
	cmd.Flag("timeout", "Maximum time to wait until the nodes confirm; 0 does not wait").Default("10s").DurationVar(&c.timeout)
	c.AddSigning(cmd)
}

// begin connects and selects the targets. It asks before a change of unknown targets, of all or almost all nodes, or of
// many nodes that match an expression.
func (c *controlCommand) begin(ctx context.Context) (opened, error) {
	if c.timeout < 0 {
		return opened{}, cli.Usagef("--timeout must not be negative")
	}
	found, err := c.open(ctx, c.Env, &c.Signing, nil, NeedNodes, NeedControl)
	if err != nil || c.yes {
		return found, err
	}
	confirm := found.confirmAll
	if c.refusesUnknown {
		confirm = found.confirm
		nodes := slices.DeleteFunc(slices.Clone(found.targets), func(t fleet.Target) bool { return t.Node == "" })
		if err := NoSuchTargets(nodes, found.known); err != nil {
			return found, fmt.Errorf("%w\nnot written; --yes writes it before they are known", err)
		}
	}
	if err := confirm(c.Env, "written"); err != nil {
		return found, err
	}
	switch hit, all := len(found.nodes()), len(found.known); {
	case found.isAll || hit <= targets.MaxUnconfirmed:
	case found.expression != nil:
		err = c.Confirm("not written", fmt.Sprintf("%d of %d nodes match", hit, all))
	case hit*100 >= almostAll*all && slices.ContainsFunc(found.targets, func(t fleet.Target) bool { return t.Group != "" }):
		err = c.Confirm("not written", fmt.Sprintf("this is for %d of %d nodes", hit, all))
	}

	return found, err
}

// almostAll is the percentage of a fleet that counts as the whole fleet.
const almostAll = 90

// written is a written control document. Revision 0 means that the key has no value.
type written struct {
	Key      string `json:"key"`
	Revision uint64 `json:"revision"`
	// Nodes are the confirmations of the nodes.
	Nodes []ask.Confirmation `json:"nodes,omitempty"`

	target fleet.Target
	// change is the change that nodes confirm, nil if there is none.
	change ask.Change
	// line is the text for users.
	line string
}

// newWritten returns a written document with its content for users.
func newWritten(key string, revision uint64, target fleet.Target, content string) *written {
	out := &written{Key: key, Revision: revision, target: target, line: fmt.Sprintf("%s revision %d: %s", key, revision, content)}
	if revision == 0 {
		out.line = key + ": " + content
	}

	return out
}

// maxConfirmLines is the maximum number of nodes with a separate line.
const maxConfirmLines = 10

// printWritten prints one line per document, or for many their number and the first names, and the confirmations of the
// nodes, the largest group of equal ones first.
func printWritten(p print.Printer, what string, all []*written) {
	names, noun := make([]string, len(all)), "node"
	nodes := map[string][]string{}
	for i, w := range all {
		if names[i] = w.target.Node; names[i] == "" {
			names[i], noun = w.target.String(), "target"
		}
		for _, c := range w.Nodes {
			nodes[c.Text] = append(nodes[c.Text], c.Node)
		}
		if len(all) <= maxConfirmLines {
			p.Printf("%s\n", w.line)
		}
	}
	if len(all) > maxConfirmLines {
		p.Printf("%s of %s: %s\n", what, print.Count(len(all), noun), print.Some(names, "--json has all"))
	}
	for _, text := range slices.SortedFunc(maps.Keys(nodes), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(nodes[b]), len(nodes[a])), cmp.Compare(a, b))
	}) {
		p.Printf("%s  %s\n", print.Text(print.Some(nodes[text], "--json has all")), print.Text(print.OneLine(text)))
	}
}

// syntax describes how an edit is written.
type syntax struct {
	// noun names the edited thing; usage shows the syntax.
	noun, usage string
	// set parses an argument that sets a name. It reports false for other arguments.
	set func(arg string) (name, value string, ok bool)
	// conflict is the error text after a name that is both set and removed.
	conflict string
}

// isChange reports whether an argument is a change rather than a node.
func (s syntax) isChange(arg string) bool {
	_, _, sets := s.set(arg)

	return sets || strings.HasSuffix(arg, "-")
}

// parse splits the arguments into nodes, which it adds to the targets, and an edit.
func (c *controlCommand) parse(args []string, s syntax) (e ask.Edit, err error) {
	if len(args) > 0 && !c.Given("on") && !c.Given("node") {
		c.nodes, args = []string{cli.NodeID(args[0])}, args[1:]
		for len(args) > 1 && !s.isChange(args[0]) {
			c.nodes, args = append(c.nodes, cli.NodeID(args[0])), args[1:]
		}
	}
	e.Set = map[string]string{}
	for _, arg := range args {
		if name, value, ok := s.set(arg); ok {
			e.Set[name] = value
			continue
		}
		name, removes := strings.CutSuffix(arg, "-")
		if !removes || name == "" {
			return e, cli.Usagef("%q: write %s", arg, s.usage)
		}
		e.Remove = append(e.Remove, name)
	}
	for _, name := range e.Remove {
		if _, both := e.Set[name]; both {
			return e, cli.Usagef("%s %s %s", s.noun, name, s.conflict)
		}
	}
	if len(e.Set)+len(e.Remove) == 0 {
		return e, cli.Usagef("no %s: write %s", s.noun, s.usage)
	}

	return e, nil
}

// eachTarget calls write for each target and continues after an error. It returns the results of the
// successful writes and the joined errors.
func eachTarget[W any](targets []fleet.Target, write func(fleet.Target) (W, error)) (done []W, err error) {
	var failed []error
	for _, t := range targets {
		w, err := write(t)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		done = append(done, w)
	}

	return done, errors.Join(failed...)
}

// await waits until each known node confirms, refuses or is unreachable. It returns an error if nodes cannot
// be read, a node refuses, or a node does not confirm in time.
func (c *controlCommand) await(ctx context.Context, found opened, all []*written) error {
	var nodes []*ask.Confirmation
	for _, one := range all {
		for _, n := range found.known {
			if one.change != nil && one.target.Includes(n.NodeState) {
				one.Nodes = append(one.Nodes, ask.NewConfirmation(one.change, n))
			}
		}
		for k := range one.Nodes {
			nodes = append(nodes, &one.Nodes[k])
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	limit, done := context.WithTimeout(ctx, c.timeout)
	defer done()
	line := c.Print.Progress()
	defer line.Clear()
	err := ask.Await(limit, nodes, found.store, func(pending []string) {
		line.Show("%d of %d nodes confirmed, waiting for %s", count(nodes)[ask.StateDone], len(nodes), print.Some(pending, "and others"))
	})
	if err != nil {
		return err
	}

	return c.verdict(ctx, print.Count(len(nodes), "node"), count(nodes))
}

// conclude waits for the confirmations of the documents, and prints the result. what names many documents.
func (c *controlCommand) conclude(ctx context.Context, found opened, what string, result any, all []*written, failed error) error {
	var waited error
	if c.timeout > 0 && len(all) > 0 {
		waited = c.await(ctx, found, all)
	}
	err := c.Print.Result(c.Format, result, func() { printWritten(c.Print, what, all) })

	return errors.Join(failed, err, waited, found.undecided)
}

// count counts the nodes by state.
func count(all []*ask.Confirmation) map[ask.State]int {
	counts := map[ask.State]int{}
	for _, c := range all {
		counts[c.State]++
	}

	return counts
}

// verdict returns an error for nodes that failed or did not confirm. Unreachable nodes are not an error.
func (c *controlCommand) verdict(ctx context.Context, all string, counts map[ask.State]int) error {
	var failed []error
	if n := counts[ask.StateFailed]; n > 0 {
		failed = append(failed, fmt.Errorf("written, and not in effect on %d of %s", n, all))
	}
	switch n := counts[ask.StatePending]; {
	case n > 0 && ctx.Err() != nil:
		failed = append(failed, fmt.Errorf("%w: written, and not confirmed by %d of %s (see muster fleet nodes)", context.Cause(ctx), n, all))
	case n > 0:
		failed = append(failed, fmt.Errorf("not confirmed by %d of %s after %s (see muster fleet nodes)", n, all, c.timeout))
	}

	return errors.Join(failed...)
}
