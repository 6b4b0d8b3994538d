package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// fleetPushCommand is muster fleet push.
type fleetPushCommand struct {
	targets
	terms
	format
	source, name string
	bundle, wait bool
	timeout      time.Duration
}

func (a *app) addFleetPush(ctx context.Context, parent *fisk.CmdClause) {
	c := &fleetPushCommand{}
	cmd := parent.Command("push", "Assign a manifest to nodes and groups")
	cmd.HelpLong("The manifest is checked as a whole first; when something is wrong nothing is pushed. A directory, with manifest.yaml at its root, travels as a bundle with all its files (but .git and the like), and so does a manifest that names files beside itself. What is assigned already is not pushed again.\n\n" +
		"  muster fleet push --group web motd.yaml\n" +
		"  muster fleet push --node db1 --node db2 --name backup ./backup/\n" +
		"  muster fleet push --all --noop sshd.yaml                  only say what would change\n" +
		"  muster fleet push --all --wait sshd.yaml                  and wait until every node runs it\n" +
		"  render | muster fleet push --group web --name site -      from standard input")
	cmd.Arg("source", "A file, a directory, or - for standard input").Required().StringVar(&c.source)
	cmd.Flag("name", "What it is called; the name of its file or directory otherwise").PlaceHolder("NAME").StringVar(&c.name)
	cmd.Flag("bundle", "Make a bundle also of a manifest that could travel alone, for one that is too large").UnNegatableBoolVar(&c.bundle)
	cmd.Flag("wait", "Wait until every node runs it, as muster fleet wait does").UnNegatableBoolVar(&c.wait)
	cmd.Flag("timeout", "How long to wait").Default("5m").DurationVar(&c.timeout)
	c.targets.add(cmd)
	c.terms.add(cmd)
	c.format.add(cmd)
	cmd.Action(a.operation(unlessNoop(func() error { return a.fleetPush(ctx, c) })))
}

func (a *app) fleetPush(ctx context.Context, c *fleetPushCommand) error {
	push, err := a.preparePush(ctx, c)
	if err != nil {
		return err
	}
	store, err := a.fleet(ctx)
	if err != nil {
		return err
	}
	line := a.progress()
	pusher := fleet.Pusher{Assignments: store, Bundles: store, OnBundle: func(size int64) {
		line.show("storing a bundle of %d KiB", (size+1023)/1024)
	}}
	done, err := pusher.Push(ctx, push)
	line.clear()
	if !c.isDocument() || err != nil {
		a.printPushed(done)
	}
	switch {
	case errors.Is(err, model.ErrTooLarge) && !push.Bundle && !push.Source.NeedsBundle():
		return fmt.Errorf("%w\npush it as a bundle instead, which may be of any size: add --bundle", err)
	case err != nil:
		return err
	}
	var standings []fleet.Standing
	var waited error
	if c.wait {
		standings, waited = a.waitFor(ctx, store, goalOf(done), waitOptions{timeout: c.timeout, quiet: c.isDocument()})
	}
	if c.isDocument() {
		document := struct {
			Pushed    []fleet.Pushed   `json:"pushed"`
			Standings []fleet.Standing `json:"standings,omitempty"`
		}{done, standings}
		if err := a.printDocument(document, c.yaml); err != nil {
			return err
		}
	}

	if errors.Is(waited, fleet.ErrNoNodes) {
		waited = fmt.Errorf("it was pushed, but %w", waited)
	}

	return waited
}

// preparePush reads and checks all that is to be pushed.
func (a *app) preparePush(ctx context.Context, c *fleetPushCommand) (push fleet.Push, err error) {
	push.Bundle = c.bundle
	if push.Targets, err = c.list(); err != nil {
		return push, err
	}
	if push.Terms, err = a.termsOf(ctx, c.terms); err != nil {
		return push, err
	}
	if push.Source, err = fleet.Read(cmp.Or(c.source, stdinName), a.stdin, a.checkManifest(ctx, push.Terms.Data)); err != nil {
		return push, notPushed(err)
	}
	push.Name = c.name
	if push.Name == "" {
		push.Name = push.Source.Name
	}
	if push.Name == "" {
		return push, usagef("a manifest from standard input needs --name NAME")
	}
	if err := model.CheckName(push.Name); err != nil {
		return push, usagef("%w; give it another one with --name", err)
	}

	return push, nil
}

func (a *app) printPushed(done []fleet.Pushed) {
	for _, p := range done {
		what, note := "", ""
		if p.Bundle {
			what = " bundle"
		}
		if p.Unchanged {
			note = " unchanged"
		}
		fmt.Fprintf(a.stdout, "%s revision %d%s %s%s\n", p.Key, p.Revision, what, p.Digest, note)
	}
}

// goalOf waits for what was pushed, whatever else is assigned under the name.
func goalOf(done []fleet.Pushed) wanted {
	var w wanted
	for _, p := range done {
		w.keys = append(w.keys, p.Key)
		if w.revisions == nil {
			w.revisions = map[string]uint64{}
		}
		w.revisions[p.Key] = p.Revision
		_, w.name, _ = fleet.ParseKey(p.Key)
	}

	return w
}
