package fleetcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/manifest"
)

// pushCommand implements muster fleet push.
type pushCommand struct {
	*cli.Env
	print.Format
	TargetFlags
	Signing
	terms
	source, name string
	bundle, wait bool
	// waitUnreachable also waits for nodes that are unreachable from the start.
	waitUnreachable bool
	// preview asks the nodes for their changes before the push.
	preview bool
	// despiteConflicts skips checkConflicts.
	despiteConflicts bool
	timeout          time.Duration
}

// addPush adds muster fleet push.
func addPush(env *cli.Env, parent *fisk.CmdClause) {
	c := &pushCommand{Env: env}
	cmd := parent.Command("push", "Assign a manifest to nodes and groups")
	cmd.HelpLong("Checks the whole manifest first, and refuses one that is not valid. It pushes a directory with manifest.yaml at its root as a bundle of all its files (without .git and the like), and likewise a manifest that names files beside it. It does not push an unchanged assignment again.\n\n" +
		"  muster fleet push --group web motd.yaml\n" +
		"  muster fleet push --node db1 --node db2 --name backup ./backup/\n" +
		"  muster fleet push --all --noop sshd.yaml              only report changes\n" +
		"  muster fleet push --group web --preview ./site/       show changes, and ask\n" +
		"  muster fleet push --all --wait sshd.yaml              wait for every node\n" +
		"  render | muster fleet push --group web --name site -  from standard input")
	cmd.Arg("source", "File, directory, or - for standard input").Required().StringVar(&c.source)
	cmd.Flag("name", "Name of the assignment (default: the name of the file or directory)").PlaceHolder("NAME").StringVar(&c.name)
	cmd.Flag("bundle", "Push as a bundle, which has no size limit").UnNegatableBoolVar(&c.bundle)
	c.addYes(cmd)
	cmd.Flag("despite-conflicts", "Push even if a node runs a manifest that declares a resource differently; such nodes reject the new one").UnNegatableBoolVar(&c.despiteConflicts)
	cmd.Flag("preview", "Show first what would change on the nodes, as muster fleet preview does, and ask; with --yes, push unless something would fail").UnNegatableBoolVar(&c.preview)
	cmd.Flag("wait", "Wait until every node runs it, like muster fleet wait; exit code 1 if another push or a removal replaces it").UnNegatableBoolVar(&c.wait)
	cmd.Flag("wait-unreachable", "With --wait, also wait for unreachable and paused nodes").UnNegatableBoolVar(&c.waitUnreachable)
	cmd.Flag("timeout", "Maximum time to wait").Default("5m").DurationVar(&c.timeout)
	c.AddTargets(env, cmd)
	c.addTerms(cmd)
	c.AddSigning(cmd)
	c.AddFormat(cmd)
	cmd.Action(env.Action(cli.UnlessNoop(c.run)))
}

func (c *pushCommand) run(ctx context.Context) error {
	if _, err := c.TargetList(); err != nil {
		return err
	}
	push, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	if c.preview && c.IsDocument() {
		return cli.Usagef("--preview has no JSON or YAML output: run muster fleet preview --json, then push")
	}
	to, err := c.open(ctx, c.Env, &c.Signing, nil, NeedManifests, NeedNodes)
	if err != nil {
		return err
	}
	push.Targets = to.targets
	if err := c.confirmPush(ctx, to, push); err != nil {
		return err
	}
	done, err := c.push(ctx, to, push)
	if err != nil {
		return err
	}
	var statuses []view.Assignment
	if c.wait || c.waitUnreachable {
		goal := assign.GoalOf(done)
		again := []string{"fleet", "wait", goal.Name}
		if len(goal.Keys) == 1 {
			again[2] = goal.Keys[0]
		}
		statuses, err = (&Wait{Env: c.Env, Goal: goal, Timeout: c.timeout, Quiet: c.IsDocument(), LeaveUnreachable: !c.waitUnreachable, Again: again}).Run(ctx, to.store)
		if err != nil && len(statuses) == 0 {
			err = fmt.Errorf("pushed, but %w", err)
		}
	}
	if c.IsDocument() {
		document := struct {
			Pushed   []assign.Pushed   `json:"pushed"`
			Statuses []view.Assignment `json:"statuses,omitempty"`
		}{done, statuses}
		err = cmp.Or(c.Print.Document(document, c.YAML), err)
	}

	return err
}

// push pushes to all targets, and prints the results.
func (c *pushCommand) push(ctx context.Context, to opened, push assign.Push) ([]assign.Pushed, error) {
	line := c.Print.Progress()
	pusher := assign.Pusher{Assignments: to.store, Bundles: kvstore.NewContent(to.store.KV), Signer: to.signer, OnUnsigned: warnUnsigned(c.Log), OnBundle: func(size int64) {
		line.Show("storing a bundle of %d KiB", (size+1023)/1024)
	}}
	done, err := pusher.Push(ctx, push)
	line.Clear()
	if !c.IsDocument() || err != nil {
		c.print(done)
	}
	if !c.preview {
		warnUnknown(c.Log, to.store.KV.Names, done, to.known)
	}
	c.printPrecedence(ctx, to.store, done, to.known)
	switch {
	case errors.Is(err, model.ErrTooLarge) && !push.Bundle && !push.Source.NeedsBundle():
		err = fmt.Errorf("%w\npush it as a bundle, which has no size limit: add --bundle", err)
	case err != nil && len(push.Targets) > 1:
		err = fmt.Errorf("%w\n%s", err, assign.CountPushed(done, len(push.Targets)))
	}

	return done, err
}

// confirmPush checks for conflicts and asks before a push that needs confirmation.
func (c *pushCommand) confirmPush(ctx context.Context, to opened, push assign.Push) error {
	err := c.checkConflicts(ctx, to.store, push, to.known)
	if err == nil {
		err = c.confirmNoop(ctx, to.store, push, to.known)
	}
	switch {
	case err != nil:
		return err
	case c.preview:
		WarnUnknown(c.Log, to.targets, to.known)
		return c.confirmPreview(ctx, to, push)
	case c.yes:
		return nil
	default:
		return to.confirm(c.Env, "pushed")
	}
}

// prepare reads and checks the source, terms and name.
func (c *pushCommand) prepare(ctx context.Context) (push assign.Push, err error) {
	push.Bundle = c.bundle
	if push.Terms, err = c.parse(ctx, c.Env); err != nil {
		return push, err
	}
	if push.Source, err = assign.ReadSource(cmp.Or(c.source, cli.Stdin), c.Stdin, c.checker(ctx, push.Terms)); err != nil {
		var problems model.Problems
		if errors.As(err, &problems) {
			err = &cli.ExitError{Code: cli.ExitFailed, Err: problems, Note: "not pushed"}
		}
		return push, cli.FileError("manifest", c.source, err)
	}
	push.Name = cmp.Or(c.name, push.Source.Name)
	if push.Name == "" {
		return push, cli.Usagef("a manifest from standard input needs --name NAME")
	}
	if err := model.CheckName(push.Name); err != nil {
		return push, cli.Usagef("%w; choose another name with --name", err)
	}

	return push, nil
}

// checker returns a checker of manifests without a node.
func (c *pushCommand) checker(ctx context.Context, terms model.Assignment) assign.ManifestCheck {
	return assign.Checker(ctx, c.Types, terms, func(w model.Problem) { c.Log.Warn(w.Error()) })
}

func (c *pushCommand) print(done []assign.Pushed) {
	for _, p := range done {
		what, note := "", ""
		if p.Bundle {
			what = " bundle"
		}
		if p.Unchanged {
			note = " unchanged"
		}
		c.Print.Printf("%s revision %d%s %s%s\n", p.Key, p.Revision, what, p.Digest, note)
	}
}

// printPrecedence prints which assignment wins on nodes with several assignments of the pushed name.
func (c *pushCommand) printPrecedence(ctx context.Context, store *Store, done []assign.Pushed, nodes []model.Node) {
	if len(done) == 0 {
		return
	}
	_, name, _ := fleet.ParseKey(done[0].Key)
	others, err := store.Named(ctx, nil, name)
	if err != nil {
		c.Log.Warn("cannot read other assignments of this name", "name", name, "error", err)
		return
	}
	for _, p := range done {
		for _, met := range fleet.PrecedenceOf(p.Key, others, nodes) {
			where := print.Some(met.Nodes, "see "+store.KV.Names.Run("fleet describe NODE"))
			if met.Wins {
				c.Print.Remark("%s wins over %s on %s", p.Key, met.Other, where)
			} else {
				c.Print.Remark("%s is overridden on %s by %s", p.Key, where, met.Other)
			}
		}
	}
}

// terms holds the flags that set the terms of an assignment.
type terms struct {
	model.Assignment
	data, expires string
}

func (t *terms) addTerms(cmd *fisk.CmdClause) {
	cmd.Flag("noop", "Nodes only report the changes that they would make").UnNegatableBoolVar(&t.Noop)
	cmd.Flag("data", "Additional data from a file, kv://bucket/key or http(s)://; overrides the manifest's own").PlaceHolder("SOURCE").StringVar(&t.data)
	cmd.Flag("interval", "Interval between runs on a node").PlaceHolder("DURATION").DurationVar((*time.Duration)(&t.Interval))
	cmd.Flag("when", "Condition, evaluated on the node; false means not assigned").PlaceHolder("EXPRESSION").StringVar(&t.When)
	cmd.Flag("expires", "Expiry: a time, or a duration from now").PlaceHolder("TIME|DURATION").StringVar(&t.expires)
	cli.Enum(cmd.Flag("drift", "Action of nodes on drift").PlaceHolder("repair|report|ignore"), (*string)(&t.Drift), "repair", "report", "ignore")
	cli.Int(cmd.Flag("priority", "Order within a target; lower runs first").PlaceHolder("N"), &t.Priority)
}

// parse returns the terms that the flags set.
func (t *terms) parse(ctx context.Context, env *cli.Env) (model.Assignment, error) {
	out := t.Assignment
	if env.Given("interval") && out.Interval.Std() < time.Second {
		return out, cli.Usagef("--interval must be at least 1s")
	}
	if t.expires != "" {
		at, err := ParseTime(t.expires, time.Now(), 1)
		switch {
		case err != nil:
			return out, cli.Usagef("--expires %w", err)
		case !at.After(time.Now()):
			return out, cli.Usagef("--expires %s is in the past", t.expires)
		}
		out.Expires = at
	}
	if err := checkCondition(ctx, env, out.When); err != nil {
		return out, err
	}
	if t.data == "" {
		return out, nil
	}
	// Facts of this machine do not apply to nodes.
	author, err := paths.AuthorIn(".")
	if err != nil {
		return out, err
	}
	data, err := env.Loader(nil).LoadData(ctx, t.data, manifest.Inputs{Author: author})
	if err != nil {
		return out, err
	}
	if data.Untrusted != nil {
		return out, fmt.Errorf("--data %s includes text from readFile, which templates on nodes could evaluate: %w", t.data, data.Untrusted)
	}
	if holdsSecret(data.Values) {
		return out, fmt.Errorf("--data %s holds a secret, which an assignment would show to everyone who reads the bucket: read it on the node, with kvGet or readFile", t.data)
	}
	out.Data = data.Values

	return out, nil
}

// checkCondition checks the syntax and types of a condition without a node.
func checkCondition(ctx context.Context, env *cli.Env, when string) error {
	if when == "" {
		return nil
	}
	v := document.Value{Kind: document.String, Text: when}
	v.Pos.File = "--when"
	if err := manifest.NewLoader(manifest.Options{Types: env.Types}).CheckCondition(ctx, "when", v); err != nil {
		return &cli.ExitError{Code: cli.ExitUsage, Err: err, Note: "not pushed"}
	}

	return nil
}

func holdsSecret(v any) bool {
	switch v := v.(type) {
	case model.Secret:
		return true
	case []any:
		return slices.ContainsFunc(v, holdsSecret)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), holdsSecret)
	default:
		return false
	}
}

// checkConflicts rejects a push that nodes would reject because an active manifest declares a resource
// differently. Nodes may claim groups that they are not in, so the error names the nodes and the user can skip the check.
func (c *pushCommand) checkConflicts(ctx context.Context, s *Store, push assign.Push, nodes []model.Node) error {
	if c.despiteConflicts {
		return nil
	}
	conflicts, err := push.Conflicts(ctx, s, c.Types, nodes)
	if unread, is := errors.AsType[*assign.CompareError](err); is {
		return fmt.Errorf("cannot compare with %s, which is active on %s: %w\nto push without this check, add --despite-conflicts", unread.Key, print.Some(unread.Nodes, "see muster fleet nodes"), unread.Err)
	}
	if err != nil {
		return err
	}
	var problems model.Problems
	for _, one := range conflicts {
		one.Message += " on " + print.Some(one.Nodes, "see muster fleet nodes")
		problems = append(problems, one.Problem)
	}
	if len(problems) > 0 {
		return &cli.ExitError{Code: cli.ExitFailed, Err: problems, Note: "not pushed, because the active manifests would stay active; --despite-conflicts pushes anyway"}
	}

	return nil
}

// confirmNoop asks before a push with --noop replaces an enforced assignment.
func (c *pushCommand) confirmNoop(ctx context.Context, s *Store, push assign.Push, nodes []model.Node) error {
	if !push.Terms.Noop || c.yes {
		return nil
	}
	enforced, err := push.Enforced(ctx, s, nodes)
	if err != nil || len(enforced) == 0 {
		return err
	}

	return c.Confirm("not pushed", "nodes would stop enforcing "+strings.Join(enforced, ", ")+", and only report the changes")
}

// warnUnknown warns of pushes to targets without known nodes, with the command that undoes the push.
func warnUnknown(log *slog.Logger, names kvstore.Names, done []assign.Pushed, nodes []model.Node) {
	for _, p := range done {
		undo := ""
		switch {
		case p.Unchanged:
		case p.Replaced > 0:
			undo = names.Run("fleet rollback " + p.Key)
		default:
			undo = names.Run("fleet rm " + p.Key)
		}
		if t, _, err := fleet.ParseKey(p.Key); err == nil {
			warnUnknownTarget(log, t, nodes, undo)
		}
	}
}
