package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// fleetShowCommand is muster fleet show.
type fleetShowCommand struct {
	format
	name            string
	revision, since uint64
	history, diff   bool
}

// shown is a revision as a document.
type shown struct {
	model.Entry
	Assignment *model.Assignment `json:"assignment,omitempty"`
	Manifest   string            `json:"manifest,omitempty"`
}

func (a *app) addFleetShow(ctx context.Context, parent *fisk.CmdClause) {
	c := &fleetShowCommand{}
	cmd := parent.Command("show", "Show an assignment, its history, or what a revision changed")
	cmd.HelpLong("The value is printed as it was pushed; what stands above it goes to standard error.\n\n  muster fleet show group.web.motd\n  muster fleet show motd                       when only one has that name\n" +
		"  muster fleet show group.web.motd --history\n  muster fleet show group.web.motd --diff      from the revision before\n" +
		"  muster fleet show group.web.motd --revision 17 --diff --from 12")
	cmd.Arg("name", "A key as muster fleet ls shows it, or a name that only one has").Required().StringVar(&c.name)
	cmd.Flag("revision", "Another revision than the newest").PlaceHolder("N").Uint64Var(&c.revision)
	cmd.Flag("history", "List the revisions that the bucket still has").UnNegatableBoolVar(&c.history)
	cmd.Flag("diff", "Show what changed from the revision before, or from --from").UnNegatableBoolVar(&c.diff)
	cmd.Flag("from", "The revision that --diff begins at").PlaceHolder("N").Uint64Var(&c.since)
	c.add(cmd)
	cmd.Action(a.operation(func() error { return a.fleetShow(ctx, c) }))
}

func (a *app) fleetShow(ctx context.Context, c *fleetShowCommand) error {
	if c.since != 0 && !c.diff {
		return usagef("--from belongs to --diff")
	}
	if err := checkNameOrKey(c.name); err != nil {
		return err
	}
	store, err := a.fleet(ctx)
	if err != nil {
		return err
	}
	key, err := store.key(ctx, c.name)
	if err != nil {
		return err
	}
	switch {
	case c.history:
		return a.showHistory(ctx, store, key, c.format)
	case c.diff:
		return a.showDiff(ctx, store, key, c)
	default:
		return a.showRevision(ctx, store, key, c)
	}
}

// key gives the key that a name stands for, when only one does.
func (f *fleetStore) key(ctx context.Context, nameOrKey string) (string, error) {
	if isKey(nameOrKey) {
		return nameOrKey, nil
	}
	all, err := f.named(ctx, nameOrKey)
	switch {
	case err != nil:
		return "", err
	case len(all) == 1:
		return all[0].Key, nil
	}
	keys := make([]string, len(all))
	for i, e := range all {
		keys[i] = e.Key
	}

	return "", usagef("several are called %s, say which: %s", nameOrKey, strings.Join(keys, ", "))
}

func (a *app) showRevision(ctx context.Context, store *fleetStore, key string, c *fleetShowCommand) error {
	e, err := fleet.Revision(ctx, store, key, c.revision)
	if err != nil {
		return err
	}
	if c.isDocument() {
		return a.printDocument(document(e), c.yaml)
	}
	if e.Deleted {
		fmt.Fprintf(a.stderr, "# %s revision %d, %s: removed\n", e.Key, e.Revision, e.Time.UTC().Format(time.RFC3339))
		return nil
	}
	fmt.Fprintf(a.stderr, "# %s revision %d, %s, %s\n", e.Key, e.Revision, e.Time.UTC().Format(time.RFC3339), e.Digest)
	text := fleet.Readable(e.Value)
	if isTerminal(a.stdout) {
		text = forTerminal(text)
	}
	_, err = fmt.Fprint(a.stdout, text)

	return err
}

// forTerminal makes the control characters of a text visible, but for those that
// end lines, and ends the last one.
func forTerminal(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(printable(strings.TrimRight(line, "\r\n")) + "\n")
	}

	return b.String()
}

func document(e model.Entry) shown {
	out := shown{Entry: e}
	out.Value = nil
	if assignment, ok := fleet.Assignment(e.Value); ok {
		out.Assignment = &assignment
		return out
	}
	out.Manifest = string(e.Value)

	return out
}

func (a *app) showHistory(ctx context.Context, store *fleetStore, key string, f format) error {
	all, err := store.History(ctx, key)
	if err != nil {
		return err
	}
	if f.isDocument() {
		for i := range all {
			all[i].Value = nil
		}
		return a.printDocument(all, f.yaml)
	}
	rows := make([][]string, len(all))
	for i, e := range all {
		what := shortDigest(e.Digest)
		if e.Deleted {
			what = "removed"
		}
		rows[i] = []string{strconv.FormatUint(e.Revision, 10), e.Time.UTC().Format(time.RFC3339), what, plural(len(e.Value), "byte")}
	}
	a.table([]string{"REVISION", "AT", "DIGEST", "SIZE"}, rows)

	return nil
}

func (a *app) showDiff(ctx context.Context, store *fleetStore, key string, c *fleetShowCommand) error {
	to, err := fleet.Revision(ctx, store, key, c.revision)
	if err != nil {
		return err
	}
	from := model.Entry{}
	if c.since == 0 {
		from, err = fleet.Before(ctx, store, to)
	} else {
		from, err = fleet.Revision(ctx, store, key, c.since)
	}
	if err != nil {
		return err
	}
	diff := fleet.Diff(from, to)
	if c.isDocument() {
		return a.printDocument(map[string]any{"key": key, "from": from.Revision, "to": to.Revision, "diff": diff}, c.yaml)
	}
	if diff == "" {
		fmt.Fprintf(a.stderr, "revisions %d and %d read the same\n", from.Revision, to.Revision)
		return nil
	}
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line, "\n")
		if isTerminal(a.stdout) {
			line = printable(line)
		}
		fmt.Fprintln(a.stdout, a.paintDiff(line))
	}

	return nil
}
