package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// TargetFlags are the flags that select nodes. Commands add the flags that they need.
type TargetFlags struct {
	nodes, groups []string
	all, yes      bool
	expression    string
	// Strict turns warnings about the expression into errors.
	Strict bool
	// remedy lists the flags of the command that select nodes.
	remedy string
}

// targetHelp is the help of the flags --node, --group and --all. A flag without help is not added.
type targetHelp struct{ node, group, all string }

// add adds the flags.
func (t *TargetFlags) add(env *cli.Env, cmd *fisk.CmdClause, help targetHelp) {
	cli.NodesVar(cmd.Flag("node", help.node).PlaceHolder("NODE").HintAction(env.CompleteNodes), &t.nodes)
	if help.group != "" {
		cmd.Flag("group", help.group).PlaceHolder("GROUP").HintAction(env.CompleteGroups).StringsVar(&t.groups)
	}
	if help.all != "" {
		cmd.Flag("all", help.all).UnNegatableBoolVar(&t.all)
	}
}

// AddTargets adds the flags of a command that needs a target.
func (t *TargetFlags) AddTargets(env *cli.Env, cmd *fisk.CmdClause) {
	t.add(env, cmd, targetHelp{"Target node; repeatable", "Target group; repeatable", "Target all nodes"})
	t.remedy = "give --node NODE, --group GROUP or --all"
}

// AddOwner adds the flags of a command for one assignment. They distinguish assignments of one name.
func (t *TargetFlags) AddOwner(env *cli.Env, cmd *fisk.CmdClause) {
	t.add(env, cmd, targetHelp{"Select the assignment of this node", "Select the assignment of this group", "Select the assignment of all nodes"})
}

// AddFilter adds the flags of a command that shows all nodes without a target.
func (t *TargetFlags) AddFilter(env *cli.Env, cmd *fisk.CmdClause, node, group string) {
	t.add(env, cmd, targetHelp{node, group, "All nodes, as without a target"})
	t.AddOn(cmd)
}

// AddRequest adds the flags of a command that sends a request.
func (t *TargetFlags) AddRequest(env *cli.Env, cmd *fisk.CmdClause) {
	t.AddTargets(env, cmd)
	t.AddOn(cmd)
	t.addYes(cmd)
	t.remedy = "give --node NODE, --group GROUP, --on EXPR or --all"
}

// AddOn adds the flags of a target expression.
func (t *TargetFlags) AddOn(cmd *fisk.CmdClause) {
	cmd.Flag("on", `Target the nodes that match an expression, such as 'group("web") && state != "unreachable"'`).PlaceHolder("EXPR").StringVar(&t.expression)
	cmd.Flag("strict", "Fail on unknown names and missing data").UnNegatableBoolVar(&t.Strict)
}

func (t *TargetFlags) addYes(cmd *fisk.CmdClause) {
	cmd.Flag("yes", "Skip confirmation").Short('y').UnNegatableBoolVar(&t.yes)
}

// AddOldGroup adds the old name of --group.
func (t *TargetFlags) AddOldGroup(cmd *fisk.CmdClause) {
	cli.OldFlag(cmd, "in-group").StringsVar(&t.groups)
}

// HasTargets reports whether --node, --group or --all is given.
func (t *TargetFlags) HasTargets() bool { return len(t.nodes)+len(t.groups) > 0 || t.all }

// Arguments returns the flags that are given, as arguments.
func (t *TargetFlags) Arguments() []string {
	var out []string
	for _, n := range t.nodes {
		out = append(out, "--node", n)
	}
	for _, g := range t.groups {
		out = append(out, "--group", g)
	}
	if t.all {
		out = append(out, "--all")
	}
	if t.expression != "" {
		out = append(out, "--on", t.expression)
	}

	return out
}

// KeyOr returns the key of a name and the flags, or the name or key itself without flags.
func (t *TargetFlags) KeyOr(nameOrKey string) (string, error) {
	if !t.HasTargets() {
		return nameOrKey, nil
	}
	if assign.IsKey(nameOrKey) {
		return "", cli.Usagef("%s is a full key; remove %s", nameOrKey, strings.Join(t.Arguments(), " "))
	}
	if err := CheckNameOrKey(nameOrKey); err != nil {
		return "", err
	}
	list, err := t.TargetList()
	if err != nil {
		return "", err
	}
	if len(list) > 1 {
		return "", cli.Usagef("this is for one assignment: give one of --node, --group and --all")
	}

	return list[0].Key(nameOrKey), nil
}

// TargetList returns the targets of --node, --group and --all, at least one, all of them valid.
func (t *TargetFlags) TargetList() ([]fleet.Target, error) {
	list := fleet.Targets(t.nodes, t.groups, t.all)
	switch {
	case len(list) == 0:
		return nil, cli.Usagef("no target: %s", t.remedy)
	case slices.Contains(t.nodes, ""):
		return nil, cli.Usagef("--node needs a name, this one is empty")
	case slices.Contains(t.groups, ""):
		return nil, cli.Usagef("--group needs a name, this one is empty")
	}

	return list, CheckTargets(list)
}

// CheckTargets returns the error of the first target with an invalid name.
func CheckTargets(list []fleet.Target) error {
	for _, target := range list {
		if err := model.CheckFamily(target.String()); err != nil {
			hint := ""
			if strings.Contains(target.String(), ",") {
				hint = "; give several names one by one, without commas"
			}
			return cli.Usagef("%w%s", err, hint)
		}
	}

	return nil
}

// CompileOn returns the expression of --on, nil without it. The flag excludes all other targets.
func (t *TargetFlags) CompileOn(env *cli.Env) (*targets.Expression, error) {
	if !env.Given("on") {
		return nil, nil
	}
	e, err := targets.Compile(t.expression)
	if err != nil {
		return nil, cli.Usagef("--on: %w", err)
	}
	e.Strict = t.Strict
	var all []string
	for _, one := range []string{AnyOf(t.nodes, t.groups), t.expression} {
		if strings.Contains(one, " ") {
			one = "(" + one + ")"
		}
		if one != "" {
			all = append(all, one)
		}
	}
	if len(all) > 1 {
		return nil, cli.Usagef("--on stands alone: write --on '%s'", strings.ReplaceAll(strings.Join(all, " && "), "'", `'\''`))
	}
	if t.all {
		return nil, cli.Usagef("--on selects among all nodes: leave --all out")
	}

	return e, nil
}

// Compile returns the expression of --on, or the list of the other targets without it.
func (t *TargetFlags) Compile(env *cli.Env) (*targets.Expression, []fleet.Target, error) {
	on, err := t.CompileOn(env)
	if on != nil || err != nil {
		return on, nil, err
	}
	list, err := t.TargetList()

	return nil, list, err
}

// AnyOf returns the expression of the named nodes and the members of groups, empty without any.
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

// selection are the targets of a command and the nodes of the fleet.
type selection struct {
	targets []fleet.Target
	// known are the states of all nodes.
	known []model.Node
	// isAll is set if the targets are all nodes.
	isAll bool
	// expression selected the targets, nil for a list of targets.
	expression *targets.Expression
	// undecided is the error of nodes that may match the expression, nil for none.
	undecided error
}

// opened is an open connection with the selected targets.
type opened struct {
	selection
	store *Store
	// signer is nil if there is no key to sign with.
	signer *assign.Signing
}

// open compiles the targets, connects, calls check unless it is nil, and selects the targets. A nil sign signs nothing.
func (t *TargetFlags) open(ctx context.Context, env *cli.Env, sign *Signing, check func(*Store) error, needs ...Need) (out opened, err error) {
	on, list, err := t.Compile(env)
	if err == nil && sign != nil {
		out.signer, err = sign.Open(env)
	}
	if err == nil {
		out.store, err = Open(ctx, env, needs...)
	}
	if err == nil && check != nil {
		err = check(out.store)
	}
	if err == nil {
		out.selection, err = find(ctx, out.store, on, list)
	}

	return out, err
}

// find reads the nodes and evaluates the expression of the targets.
func find(ctx context.Context, store *Store, on *targets.Expression, list []fleet.Target) (selection, error) {
	known, err := store.Nodes(ctx)
	out := selection{targets: list, known: known, isAll: slices.Contains(list, fleet.Target{Group: model.GroupAll})}
	if err != nil || on == nil {
		return out, err
	}
	found, err := store.Select(ctx, on, known)
	if err == nil {
		err = NoMatch(on, found)
	}
	out.targets, out.expression, out.undecided = found.Targets(), on, UndecidedError(found)
	out.isAll = len(found.Nodes) == found.Known

	return out, err
}

// nodes returns the names of the nodes.
func (s selection) nodes() []string { return ask.NodesOf(s.targets, s.known) }

// states returns the states of the nodes of the fleet by name.
func (s selection) states() map[string]model.Node {
	out := map[string]model.Node{}
	for _, n := range s.known {
		out[n.Node] = n
	}

	return out
}

// names returns the names of the nodes as a set.
func (s selection) names() map[string]bool {
	out := map[string]bool{}
	for _, name := range s.nodes() {
		out[name] = true
	}

	return out
}

// remark prints how many nodes match the expression.
func (s selection) remark(p print.Printer) {
	if s.expression != nil {
		p.Remark("%d of %d nodes match", len(s.targets), len(s.known))
	}
}

// sender returns the sender of a request to the nodes.
func (s selection) sender() model.Sender {
	out := model.Sender{By: Operator(), Nodes: len(s.nodes())}
	if s.expression != nil {
		out.On = s.expression.String()
	} else {
		out.To = fleet.JoinTargets(s.targets)
	}

	return out
}

// confirm asks before an action on groups without known nodes, or on all nodes of a fleet that is not small. did is the
// verb of the action, such as "pushed".
func (s selection) confirm(env *cli.Env, did string) error {
	groups := slices.DeleteFunc(slices.Clone(s.targets), func(t fleet.Target) bool { return t.Group == "" })
	if err := NoSuchTargets(groups, s.known); err != nil && len(s.known) > 0 {
		if err := env.Confirm("not "+did, strings.ReplaceAll(err.Error(), "\n", ", ")); err != nil {
			return err
		}
	}

	return s.confirmAll(env, did)
}

// confirmAll asks before an action on all nodes of a fleet that is not small.
func (s selection) confirmAll(env *cli.Env, did string) error {
	if !s.isAll || len(s.known) <= targets.MaxUnconfirmed {
		return nil
	}

	return env.Confirm("not "+did, fmt.Sprintf("this is for all %d nodes", len(s.known)))
}

// Select returns the nodes that match an expression and logs a warning for the undecided nodes.
func (s *Store) Select(ctx context.Context, e *targets.Expression, all []model.Node) (targets.Selection, error) {
	var assigned *fleet.Assigned
	if e.UsesStatus() {
		entries, err := s.List(ctx)
		if err != nil {
			return targets.Selection{}, err
		}
		assigned = fleet.NewAssigned(entries)
	}
	found, err := s.SelectOf(ctx, assigned, e, all)
	if err == nil {
		warnUndecided(s.log, found.Undecided)
		for _, text := range found.Warnings {
			s.log.Warn(text)
		}
	}

	return found, err
}

// strictCode is the exit code for warnings with --strict.
const strictCode = 2

// StrictError returns the error for problems with --strict, nil for no problems.
func StrictError(problems []string) error { return strict(targets.StrictError(problems)) }

// strict adds the exit code to an error that wraps targets.ErrStrict.
func strict(err error) error {
	if errors.Is(err, targets.ErrStrict) {
		return &cli.ExitError{Code: strictCode, Err: err}
	}

	return err
}

// SelectOf is Select with known assignments and without warnings.
func (s *Store) SelectOf(ctx context.Context, assigned *fleet.Assigned, e *targets.Expression, all []model.Node) (targets.Selection, error) {
	bucket := kvstore.NewNodes(s.KV)
	found, err := targets.Selector{Statuses: assigned.Statuses, Facts: bucket.Facts, Inventories: bucket.Inventories}.Select(ctx, e, all)

	return found, strict(err)
}

// maxWarned is the maximum number of undecided nodes in a warning.
const maxWarned = 10

// warnUndecided logs the undecided nodes by reason. Of many nodes it logs the first and the count, and all at level debug.
func warnUndecided(log *slog.Logger, all []targets.Undecided) {
	const text = "cannot tell whether nodes match"
	for _, r := range targets.Reasons(all) {
		if len(r.Nodes) <= maxWarned {
			log.Warn(text, "nodes", strings.Join(r.Nodes, ","), "reason", r.Reason)
			continue
		}
		log.Warn(text, "first", strings.Join(r.Nodes[:maxWarned], ","), "count", len(r.Nodes), "reason", r.Reason)
		log.Debug(text, "nodes", strings.Join(r.Nodes, ","), "reason", r.Reason)
	}
}

// NoMatch returns an error if no node matches an expression.
func NoMatch(e *targets.Expression, found targets.Selection) error {
	if len(found.Nodes) > 0 {
		return nil
	}

	return fmt.Errorf("no node matches --on '%s': %s", e, describeKnown(found))
}

// describeKnown counts the nodes that do not match.
func describeKnown(found targets.Selection) string {
	switch undecided := len(found.Undecided); {
	case found.Known == 0:
		return "no nodes are known; nodes run muster agent run"
	case undecided > 0:
		return fmt.Sprintf("%s known, %d of them undecided", print.Count(found.Known, "node"), undecided)
	default:
		return print.Count(found.Known, "node") + " known (see muster fleet nodes)"
	}
}

// UndecidedError returns the error of nodes that may match an expression, nil for none.
func UndecidedError(found targets.Selection) error {
	if len(found.Undecided) == 0 {
		return nil
	}
	names := make([]string, len(found.Undecided))
	for i, u := range found.Undecided {
		names[i] = u.Node
	}

	return fmt.Errorf("cannot tell whether these match: %s", print.Some(names, "all of them: --log-level debug"))
}
