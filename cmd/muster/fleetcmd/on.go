package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// ConfirmAll asks before a change for all nodes of a fleet that is not small; did is its verb, such as "pushed".
func ConfirmAll(env *cli.Env, did string, nodes int) error {
	if nodes <= fleet.MaxUnconfirmed {
		return nil
	}

	return Confirm(env, did, fmt.Sprintf("this is for all %d nodes", nodes))
}

// On is the flag of a target expression.
type On struct {
	expression string
	// Strict turns warnings about the expression into errors.
	Strict bool
}

// AddOn adds the flag.
func (o *On) AddOn(cmd *fisk.CmdClause) {
	cmd.Flag("on", `Target the nodes that match an expression, such as 'group("web") && state != "unreachable"'`).PlaceHolder("EXPR").StringVar(&o.expression)
	cmd.Flag("strict", "Fail on unknown names and missing data").UnNegatableBoolVar(&o.Strict)
}

// OnFlags returns the flag as arguments, where it was given.
func (o *On) OnFlags() []string {
	if o.expression == "" {
		return nil
	}

	return []string{"--on", o.expression}
}

// Compile returns the expression, nil where the flag is not given. beside are the expressions
// of what else selects nodes, empty for nothing; the error then has one expression for all.
func (o *On) Compile(env *cli.Env, beside ...string) (*targets.Expression, error) {
	if !env.Given("on") {
		return nil, nil
	}
	e, err := fleet.CompileTarget(o.expression)
	if err != nil {
		return nil, cli.Usagef("--on: %w", err)
	}
	e.Strict = o.Strict
	var all []string
	for _, other := range append(beside, o.expression) {
		if strings.Contains(other, " ") {
			other = "(" + other + ")"
		}
		if other != "" {
			all = append(all, other)
		}
	}
	if len(all) > 1 {
		return nil, cli.Usagef("--on stands alone: write --on '%s'", strings.ReplaceAll(strings.Join(all, " && "), "'", `'\''`))
	}

	return e, nil
}

// CompileUnlessAll is Compile for a command with AddAllDefault, whose flag is all.
func (o *On) CompileUnlessAll(env *cli.Env, all bool, beside string) (*targets.Expression, error) {
	on, err := o.Compile(env, beside)
	if on != nil && all {
		return nil, errAllBesideOn
	}

	return on, err
}

// errAllBesideOn is the error of --all beside --on.
var errAllBesideOn = cli.Usagef("--on selects among all nodes: leave --all out")

// CompileOr returns the expression, or without one the list of the other targets.
func (o *On) CompileOr(env *cli.Env, others *Targets) (*targets.Expression, []fleet.Target, error) {
	on, err := o.Compile(env, others.Expression())
	switch {
	case err != nil:
		return nil, nil, err
	case on == nil && !others.HasTargets():
		return nil, nil, cli.Usagef("no target: give --node NODE, --group GROUP, --on EXPR or --all")
	case on == nil:
		list, err := others.TargetList()
		return nil, list, err
	case others.All():
		return nil, nil, errAllBesideOn
	default:
		return on, nil, nil
	}
}

// AnyOf returns the expression of the nodes that have one of some names, or are in one of
// some groups; empty without any.
func AnyOf(names, groups []string) string {
	var parts []string
	for _, n := range names {
		parts = append(parts, fmt.Sprintf("node == %q", n))
	}
	for _, g := range groups {
		parts = append(parts, fmt.Sprintf("group(%q)", g))
	}

	return strings.Join(parts, " || ")
}

// Select returns which of the nodes match an expression, and logs of which nobody knows.
func (s *Store) Select(ctx context.Context, e *targets.Expression, all []model.Node) (fleet.Selection, error) {
	list := func(ctx context.Context) ([]model.Entry, error) { return s.List(ctx) }
	bucket := kvstore.NewNodes(s.KV)
	found, err := fleet.Selector{List: list, Facts: bucket.Facts, Inventories: bucket.Inventories}.Select(ctx, e, all)
	if err == nil {
		warnUndecided(s.log, found.Undecided)
		for _, text := range found.Warnings {
			s.log.Warn(text)
		}
	}

	return found, strict(err)
}

// strictCode is the exit code for warnings with --strict.
const strictCode = 2

// StrictError returns the error for problems with --strict, nil for no problems.
func StrictError(problems []string) error { return strict(fleet.StrictError(problems)) }

// strict adds the exit code to an error that wraps fleet.ErrStrict.
func strict(err error) error {
	if errors.Is(err, fleet.ErrStrict) {
		return &cli.ExitError{Code: strictCode, Err: err}
	}

	return err
}

// SelectOf is Select with assignments that are known. It logs nothing.
func (s *Store) SelectOf(ctx context.Context, assigned *fleet.Assigned, e *targets.Expression, all []model.Node) (fleet.Selection, error) {
	bucket := kvstore.NewNodes(s.KV)
	found, err := fleet.Selector{Statuses: assigned.Statuses, Facts: bucket.Facts, Inventories: bucket.Inventories}.Select(ctx, e, all)

	return found, strict(err)
}

// SelectNow is Select among all nodes. That none matches is an error.
func (s *Store) SelectNow(ctx context.Context, e *targets.Expression) (fleet.Selection, error) {
	all, err := s.Nodes(ctx)
	if err != nil {
		return fleet.Selection{}, err
	}
	found, err := s.Select(ctx, e, all)
	if err != nil {
		return found, err
	}

	return found, NoMatch(e, found)
}

// maxWarned is how many of the undecided nodes of a reason are named in a warning.
const maxWarned = 10

// warnUndecided names the nodes of which nobody knows whether they match, by reason: of many the first and how many
// there are, and all of them at the level debug.
func warnUndecided(log *slog.Logger, all []fleet.Undecided) {
	const text = "cannot tell whether nodes match"
	for _, r := range fleet.Reasons(all) {
		if len(r.Nodes) <= maxWarned {
			log.Warn(text, "nodes", strings.Join(r.Nodes, ","), "reason", r.Reason)
			continue
		}
		log.Warn(text, "first", strings.Join(r.Nodes[:maxWarned], ","), "count", len(r.Nodes), "reason", r.Reason)
		log.Debug(text, "nodes", strings.Join(r.Nodes, ","), "reason", r.Reason)
	}
}

// NoMatch returns the error of an expression that no node matches, nil where one does.
func NoMatch(e *targets.Expression, found fleet.Selection) error {
	if len(found.Nodes) > 0 {
		return nil
	}

	return fmt.Errorf("no node matches --on '%s': %s", e, describeKnown(found))
}

// describeKnown counts the nodes that do not match.
func describeKnown(found fleet.Selection) string {
	switch undecided := len(found.Undecided); {
	case found.Known == 0:
		return "no nodes are known; nodes run muster agent run"
	case undecided > 0:
		return fmt.Sprintf("%s known, of which %d cannot be judged", print.Count(found.Known, "node"), undecided)
	default:
		return print.Count(found.Known, "node") + " known (see muster fleet nodes)"
	}
}

// UndecidedError returns the error of nodes of which nobody knows whether they match, nil
// for none.
func UndecidedError(found fleet.Selection) error {
	if len(found.Undecided) == 0 {
		return nil
	}
	names := make([]string, len(found.Undecided))
	for i, u := range found.Undecided {
		names[i] = u.Node
	}

	return fmt.Errorf("cannot tell whether these match: %s", print.Some(names, "all of them: --log-level debug"))
}
