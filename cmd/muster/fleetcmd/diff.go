package fleetcmd

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/model"
)

// diffCommand implements muster fleet diff.
type diffCommand struct {
	*cli.Env
	print.Format
	args     []string
	exitCode bool
}

func addDiff(env *cli.Env, parent *fisk.CmdClause) {
	c := &diffCommand{Env: env}
	cmd := parent.Command("diff", "Show the difference of two revisions")
	cmd.HelpLong("Compares the manifests, the files of bundles (content, kind, mode, target) and the terms of two revisions, in any pushed form. Compares binary files by digest and size. muster fleet history and fleet show --history list the revisions; their numbers are unique in a fleet.\n\n" +
		"  muster fleet diff 12 17\n" +
		"  muster fleet diff group.web.motd 12          against the current revision\n" +
		"  muster fleet diff motd 12 17                 if the name is unique\n" +
		"  muster fleet diff group.web.motd@12 group.db.motd@17")
	cmd.Arg("revisions", "Two revisions, N or KEY@N; or a key or unique name, and one revision or two").Required().HintAction(env.CompleteAssignments).StringsVar(&c.args)
	cmd.Flag("exit-code", "Exit with code 1 if the revisions differ").UnNegatableBoolVar(&c.exitCode)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

// wanted names a revision on the command line.
type wanted struct {
	// nameOrKey is empty if only a number was given.
	nameOrKey string
	// revision is 0 for the newest revision.
	revision uint64
}

// parseRevision parses N or KEY@N; ok is false for anything else. With a name it parses N only, as a revision
// of that name.
func parseRevision(text, name string) (wanted, bool) {
	number := text
	if key, after, has := strings.Cut(text, "@"); has && name == "" {
		name, number = key, after
		if key == "" {
			return wanted{}, false
		}
	}
	n, err := strconv.ParseUint(number, 10, 64)

	return wanted{name, n}, err == nil && n > 0
}

// parse returns the two revisions that the arguments name.
func (c *diffCommand) parse() (from, to wanted, err error) {
	name, rest := "", c.args
	if _, is := parseRevision(rest[0], ""); !is {
		name, rest = rest[0], rest[1:]
		if err := CheckNameOrKey(name); err != nil {
			return from, to, err
		}
	}
	all := []wanted{}
	for _, text := range rest {
		w, is := parseRevision(text, name)
		if !is {
			return from, to, cli.Usagef("%q is not a revision: write its number, or KEY@NUMBER", text)
		}
		if w.nameOrKey != "" {
			if err := CheckNameOrKey(w.nameOrKey); err != nil {
				return from, to, err
			}
		}
		all = append(all, w)
	}
	if name != "" && len(all) == 1 {
		all = append(all, wanted{name, 0})
	}
	if len(all) != 2 {
		return from, to, cli.Usagef("give two revisions, or a manifest and one revision or two")
	}

	return all[0], all[1], nil
}

func (c *diffCommand) run(ctx context.Context) error {
	first, second, err := c.parse()
	if err != nil {
		return err
	}
	store, err := Open(ctx, c.Env, NeedManifests)
	if err != nil {
		return err
	}
	from, err := first.find(ctx, store)
	if err != nil {
		return err
	}
	to, err := second.find(ctx, store)
	if err != nil {
		return err
	}
	differ, err := printDiff(ctx, c.Print, c.Format, store, from, to)
	if err == nil && differ && c.exitCode {
		return &cli.ExitError{Code: cli.ExitFailed}
	}

	return err
}

// find returns the stored revision. The newest revision may be a removal.
func (w wanted) find(ctx context.Context, store *Store) (e model.Entry, err error) {
	if w.nameOrKey == "" {
		e, err = store.Revision(ctx, w.revision)
	} else {
		var key string
		var all []model.Entry
		if key, all, err = store.HistoryOf(ctx, w.nameOrKey); err != nil {
			return e, err
		}
		if e = all[len(all)-1]; w.revision != 0 {
			if e, err = assign.FindRevision(all, w.revision); err != nil {
				err = fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	if err == nil && e.Refused != "" {
		err = fmt.Errorf("%s revision %d cannot be used: %s", e.Key, e.Revision, e.Refused)
	}

	return e, err
}

// difference is the JSON document of a diff.
type difference struct {
	Key string `json:"key"`
	// FromKey is the key of the first revision, if it differs from Key.
	FromKey string `json:"from_key,omitempty"`
	From    uint64 `json:"from"`
	To      uint64 `json:"to"`
	Diff    string `json:"diff"`
}

// printDiff prints the difference of two revisions, and reports whether they differ.
func printDiff(ctx context.Context, p print.Printer, format print.Format, store *Store, from, to model.Entry) (differ bool, err error) {
	before, err := store.Content(ctx, from)
	if err != nil {
		return false, fmt.Errorf("%s revision %d: %w", from.Key, from.Revision, err)
	}
	after, err := store.Content(ctx, to)
	if err != nil {
		return false, fmt.Errorf("%s revision %d: %w", to.Key, to.Revision, err)
	}
	d := difference{Key: to.Key, From: from.Revision, To: to.Revision}
	if from.Key != to.Key {
		d.FromKey = from.Key
	}
	if d.Diff, err = before.Diff(ctx, after); err != nil {
		return false, err
	}

	return d.Diff != "", p.Result(format, d, func() {
		if d.Diff == "" {
			p.Remark("no difference between revisions %d and %d", from.Revision, to.Revision)
		}
		p.Diff(d.Diff)
	})
}
