package fleetcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// showCommand implements muster fleet show.
type showCommand struct {
	*cli.Env
	print.Format
	TargetFlags
	name           string
	revision, from uint64
	history, diff  bool
	file           string
}

// revisionDocument is the JSON document of a revision.
type revisionDocument struct {
	model.Entry
	Assignment *model.Assignment `json:"assignment,omitempty"`
	Manifest   string            `json:"manifest,omitempty"`
	// Problem is why nodes reject the revision.
	Problem string `json:"problem,omitempty"`
	// Signed is the signature; nil if there is none.
	Signed *assign.Signature `json:"signed,omitempty"`
	// Rejected lists the nodes that rejected the revision.
	Rejected []fleet.Rejection `json:"rejected,omitempty"`
	// Files are the files of the bundle, by name.
	Files []assign.File `json:"files,omitempty"`
	// Missing is why the files of the bundle are not listed. BundleRefused is why nodes refuse the bundle.
	Missing       string `json:"missing,omitempty"`
	BundleRefused string `json:"bundle_refused,omitempty"`
}

func addShow(env *cli.Env, parent *fisk.CmdClause) {
	c := &showCommand{Env: env}
	cmd := parent.Command("show", "Show an assignment, its history, or the changes of a revision")
	cmd.HelpLong("Prints the pushed value and the files of a bundle, with a heading on standard error. --diff compares manifests, files of bundles (content, kind, mode, target) and terms, in any pushed form.\n\n  muster fleet show group.web.motd\n  muster fleet show motd                       if the name is unique\n" +
		"  muster fleet show group.web.motd --history\n  muster fleet show group.web.motd --diff      against the revision before\n" +
		"  muster fleet show group.web.motd --revision 17 --diff --from 12\n  muster fleet show group.web.motd --file files/motd   one file of the bundle")
	cmd.Arg("name", "Key (see muster fleet ls), or name").Required().HintAction(env.CompleteAssignments).StringVar(&c.name)
	c.AddOwner(env, cmd)
	cmd.Flag("revision", "Revision to show (default: the newest)").PlaceHolder("N").Uint64Var(&c.revision)
	cmd.Flag("history", "List the stored revisions").UnNegatableBoolVar(&c.history)
	cmd.Flag("diff", "Show the changes since the revision before, or since --from").UnNegatableBoolVar(&c.diff)
	cmd.Flag("from", "First revision of --diff").PlaceHolder("N").Uint64Var(&c.from)
	cmd.Flag("file", "Print one file of the bundle").PlaceHolder("NAME").StringVar(&c.file)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

func (c *showCommand) run(ctx context.Context) error {
	if c.from != 0 && !c.diff {
		return cli.Usagef("--from needs --diff")
	}
	if c.history && c.diff {
		return cli.Usagef("give one of --history and --diff")
	}
	if c.file != "" && (c.history || c.diff || c.IsDocument()) {
		return cli.Usagef("--file can be combined only with --revision and flags that select the assignment")
	}
	store, key, all, err := c.openHistory(ctx, c.Env, c.name)
	if err != nil {
		return err
	}
	if c.history {
		return c.showHistory(ctx, all)
	}
	e, err := assign.FindRevision(all, c.revision)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", key, err)
	case e.Refused != "":
		return fmt.Errorf("%s revision %d cannot be used: %s (muster fleet rm %s removes it)", key, e.Revision, e.Refused, key)
	case c.diff:
		return c.showDiff(ctx, store, all, e)
	case c.file != "":
		return store.WriteFile(ctx, e, c.file, c.Print.Raw())
	}
	doc, err := newDocument(ctx, c.Env, store, e)
	if err != nil {
		return err
	}
	nodes, err := store.Nodes(ctx)
	if err != nil {
		return err
	}
	doc.Rejected = fleet.Rejections(e, nodes)

	return c.Print.Result(c.Format, doc, func() { c.showRevision(e, doc) })
}

func newDocument(ctx context.Context, env *cli.Env, s *Store, e model.Entry) (revisionDocument, error) {
	out := revisionDocument{Entry: e}
	out.Value = nil
	out.Signed = assign.SignatureOf(ctx, env.Flags.Prefix, e)
	value, problems := document.DecodeAssigned(e.Key, e.Value)
	switch {
	case problems != nil:
		out.Problem, out.Manifest = assign.Invalid(problems), string(value.Content)
		return out, nil
	case value.Bare:
		out.Manifest = value.Manifest
		return out, nil
	}
	out.Assignment = &value.Assignment
	if value.Bundle == "" {
		return out, nil
	}
	content, err := s.Content(ctx, e)
	out.Files = content.Files()
	switch {
	case errors.Is(err, model.ErrNotFound), errors.Is(err, model.ErrInvalidName):
		out.Missing = err.Error()
	case errors.Is(err, assign.ErrRefused):
		out.BundleRefused = err.Error()
	case err != nil:
		return out, err
	}

	return out, nil
}

func (c *showCommand) showRevision(e model.Entry, doc revisionDocument) {
	defer func() {
		if doc.Missing != "" {
			c.Print.Remark("# no files: %s", print.Text(print.OneLine(doc.Missing)))
		}
		if doc.BundleRefused != "" {
			c.Print.Remark("# %s", print.Text(print.OneLine(doc.BundleRefused)))
		}
		for _, r := range doc.Rejected {
			c.Print.Remark("# rejected by %s: %s", print.Text(r.Node), print.Text(print.OneLine(r.Reason)))
		}
	}()
	stored := print.Time(e.Time)
	if e.By != "" {
		stored += " by " + print.Text(print.OneLine(e.By))
	}
	if e.Deleted {
		c.Print.Remark("# %s revision %d, %s: removed%s", e.Key, e.Revision, stored, doc.Signed)
		return
	}
	c.Print.Remark("# %s revision %d, %s, %s%s", e.Key, e.Revision, stored, e.Digest, doc.Signed)
	text := assign.Readable(e.Key, e.Value)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if len(doc.Files) > 0 {
		text += "files:\n"
	}
	var list strings.Builder
	for _, f := range doc.Files {
		list.WriteString("  - " + f.String() + "\n")
	}
	text += list.String()
	if print.IsTerminal(c.Print.Out) {
		text = print.Lines(text)
	}
	fmt.Fprint(c.Print.Out, text)
}

// storedRevision is a revision without its value.
type storedRevision struct {
	model.Entry
	Signed *assign.Signature `json:"signed,omitempty"`
}

func (c *showCommand) showHistory(ctx context.Context, all []model.Entry) error {
	rows := make([][]string, len(all))
	stored := make([]storedRevision, len(all))
	for i, e := range all {
		stored[i] = storedRevision{e, assign.SignatureOf(ctx, c.Flags.Prefix, e)}
		stored[i].Value = nil
		digest := print.ShortDigest(e.Digest)
		if e.Deleted {
			digest = "removed"
		}
		rows[i] = []string{strconv.FormatUint(e.Revision, 10), print.Time(e.Time), digest, print.Count(len(e.Value), "byte"), cmp.Or(print.OneLine(e.By), "-"), stored[i].Signed.Short()}
	}

	return c.Print.Result(c.Format, stored, func() {
		c.Print.Table([]string{"REVISION", "TIME", "DIGEST", "SIZE", "BY", "SIGNED BY"}, rows, "no revisions")
	})
}

func (c *showCommand) showDiff(ctx context.Context, s *Store, all []model.Entry, to model.Entry) error {
	from, err := assign.FindRevision(all, c.from)
	if c.from == 0 {
		from, err = assign.RevisionBefore(all, to)
	}
	if err != nil {
		return err
	}
	_, err = printDiff(ctx, c.Print, c.Format, s, from, to)

	return err
}
