package fleetcmd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// Targets are the flags that select nodes.
type Targets struct {
	nodes, groups []string
	all           bool
}

// AddTargets adds the flags.
func (t *Targets) AddTargets(env *cli.Env, cmd *fisk.CmdClause) {
	cli.NodesVar(cmd.Flag("node", "Target node; repeatable").PlaceHolder("NODE").HintAction(env.CompleteNodes), &t.nodes)
	cmd.Flag("group", "Target group; repeatable").PlaceHolder("GROUP").HintAction(env.CompleteGroups).StringsVar(&t.groups)
	cmd.Flag("all", "Target all nodes").UnNegatableBoolVar(&t.all)
}

// AddNames adds nodes that are named as arguments to those of --node.
func (t *Targets) AddNames(names []string) { t.nodes = append(names, t.nodes...) }

// Owner are the flags that tell assignments of one name apart, by the node or group that they are for.
type Owner struct{ targets Targets }

// AddOwner adds the flags.
func (o *Owner) AddOwner(env *cli.Env, cmd *fisk.CmdClause) {
	cli.NodesVar(cmd.Flag("node", "Select the assignment of this node").PlaceHolder("NODE").HintAction(env.CompleteNodes), &o.targets.nodes)
	cmd.Flag("group", "Select the assignment of this group").PlaceHolder("GROUP").HintAction(env.CompleteGroups).StringsVar(&o.targets.groups)
	cmd.Flag("all", "Select the assignment of all nodes").UnNegatableBoolVar(&o.targets.all)
}

// KeyOr returns the key of a name where the flags say whose it is, else the name or key itself.
func (o *Owner) KeyOr(nameOrKey string) (string, error) {
	if !o.targets.HasTargets() {
		return nameOrKey, nil
	}
	if IsKey(nameOrKey) {
		return "", cli.Usagef("%s is a key, which has for whom it is: leave %s out", nameOrKey, strings.Join(o.targets.TargetFlags(), " "))
	}
	if err := CheckNameOrKey(nameOrKey); err != nil {
		return "", err
	}
	list, err := o.targets.TargetList()
	if err != nil {
		return "", err
	}
	if len(list) > 1 {
		return "", cli.Usagef("this is for one assignment: give one of --node, --group and --all")
	}

	return list[0].Key(nameOrKey), nil
}

// AddAllDefault adds --all to a command that takes all nodes where no target is given.
func AddAllDefault(cmd *fisk.CmdClause, all *bool) {
	cmd.Flag("all", "All nodes, as without a target").UnNegatableBoolVar(all)
}

// AddOldGroup adds the old name of --group.
func (t *Targets) AddOldGroup(cmd *fisk.CmdClause) {
	cli.OldFlag(cmd, "in-group").StringsVar(&t.groups)
}

// HasTargets reports whether any target is given.
func (t *Targets) HasTargets() bool { return len(t.nodes)+len(t.groups) > 0 || t.all }

// TargetFlags returns the flags that were given, as arguments.
func (t *Targets) TargetFlags() []string {
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

	return out
}

// Expression returns the expression of the nodes and groups that are given, empty for none.
func (t *Targets) Expression() string { return AnyOf(t.nodes, t.groups) }

// All reports whether all nodes are targets.
func (t *Targets) All() bool { return t.all || slices.Contains(t.groups, model.GroupAll) }

// TargetList returns the targets, at least one, all of them valid.
func (t *Targets) TargetList() ([]fleet.Target, error) {
	list := fleet.Targets(t.nodes, t.groups, t.all)
	switch {
	case len(list) == 0:
		return nil, cli.Usagef("no target: give --node NODE, --group GROUP or --all")
	case slices.Contains(t.nodes, ""):
		return nil, cli.Usagef("--node needs a name, this one is empty")
	case slices.Contains(t.groups, ""):
		return nil, cli.Usagef("--group needs a name, this one is empty")
	}
	return list, CheckTargets(list)
}

// CheckTargets returns the error of a target whose name is not valid.
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

// ParseTime parses a time, or a duration from now: after it with sign 1, before it
// with -1. The words today and yesterday mean the start of that day, local time.
func ParseTime(text string, now time.Time, sign time.Duration) (time.Time, error) {
	if d, err := fisk.ParseDuration(text); err == nil {
		return now.Add(sign * d).UTC(), nil
	}
	local := now.Local()
	midnight := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.Local)
	switch text {
	case "today":
		return midnight.UTC(), nil
	case "yesterday":
		return midnight.AddDate(0, 0, -1).UTC(), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at.UTC(), nil
		}
	}

	return time.Time{}, fmt.Errorf("%q: neither a duration such as 90m or 2d nor a time such as 2006-01-02T15:04:05Z", text)
}
