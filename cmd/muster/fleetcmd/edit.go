package fleetcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/choria-io/fisk"
	"github.com/kballard/go-shellquote"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/host/command"
)

// editCommand implements muster fleet edit. It pushes an assigned manifest after the user edited it.
type editCommand struct {
	pushCommand
	owner TargetFlags
	name  string
}

// addEdit adds muster fleet edit.
func addEdit(env *cli.Env, parent *fisk.CmdClause) {
	c := &editCommand{pushCommand: pushCommand{Env: env}}
	cmd := parent.Command("edit", "Edit the manifest of an assignment, and push it")
	cmd.HelpLong("Opens the manifest in $VISUAL or $EDITOR (vi without both), checks it like muster fleet push, shows the changes, asks, and pushes it with its current terms. In a bundle it edits manifest.yaml. It replaces only the opened revision. A manifest that is not pushed stays in a file, and the command prints its path.\n\n" +
		"  muster fleet edit group.web.motd\n" +
		"  muster fleet edit motd --preview                  if the name is unique; show first what would change on the nodes\n" +
		"  EDITOR='sed -i s/debug/info/' muster fleet edit motd --yes")
	cmd.Arg("name", "Key (see muster fleet ls), or name").Required().HintAction(env.CompleteAssignments).StringVar(&c.name)
	c.owner.AddOwner(env, cmd)
	c.addYes(cmd)
	cmd.Flag("despite-conflicts", "Push even if a node runs a manifest that declares a resource differently; such nodes reject the new one").UnNegatableBoolVar(&c.despiteConflicts)
	cmd.Flag("preview", "Show also what would change on the nodes, as muster fleet preview does; with --yes, push unless something would fail").UnNegatableBoolVar(&c.preview)
	cmd.Flag("timeout", "Maximum time to wait for --preview").Default("5m").DurationVar(&c.timeout)
	c.AddSigning(cmd)
	cmd.Action(env.Action(cli.UnlessNoop(c.run)))
}

// edited is the state of one edit.
type edited struct {
	*assign.WorkingCopy
	store   *Store
	signer  *assign.Signing
	current model.Entry
	terms   model.Assignment
	argv    []string
}

func (c *editCommand) run(ctx context.Context) error {
	argv, err := editor(c.CanAsk())
	if err != nil {
		return err
	}
	e := &edited{argv: argv}
	if e.signer, err = c.Signing.Open(c.Env); err != nil {
		return err
	}
	store, key, all, err := c.owner.openHistory(ctx, c.Env, c.name)
	if err != nil {
		return err
	}
	e.store = store
	if e.current, err = assign.FindRevision(all, 0); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if !c.yes && !c.CanAsk() {
		return cli.Usagef("cannot ask for confirmation without a terminal; give --yes")
	}
	if e.current.Refused != "" {
		return fmt.Errorf("%s revision %d cannot be used: %s (muster fleet rm %s removes it)", key, e.current.Revision, e.current.Refused, key)
	}
	value, problems := document.DecodeAssigned(key, e.current.Value)
	if problems != nil {
		return fmt.Errorf("%s revision %d is not a valid assignment: %s; push it again", key, e.current.Revision, assign.Invalid(problems))
	}
	e.terms = value.Assignment
	e.terms.Protocol, e.terms.Name, e.terms.Digest, e.terms.Issued, e.terms.Manifest, e.terms.Bundle = "", "", "", time.Time{}, "", ""
	if e.signer == nil && signed.IsEnvelope(e.current.Value) {
		warnUnsigned(c.Log)(key)
	}
	if e.WorkingCopy, err = assign.NewWorkingCopy(ctx, key, value, kvstore.NewContent(store.KV).GetBundle); err != nil {
		return fmt.Errorf("%s revision %d: %w", key, e.current.Revision, err)
	}

	return c.conclude(e, c.loop(ctx, e))
}

// conclude removes the working copy, or reports its path if it has changes that were not pushed.
func (c *editCommand) conclude(e *edited, err error) error {
	changed, readErr := e.IsChanged()
	if err == nil || !changed && readErr == nil {
		cli.CleanUp(c.Log, e.Remove)
		return err
	}
	var problems model.Problems
	if errors.As(err, &problems) {
		return &cli.ExitError{Code: cli.ExitFailed, Err: problems, Note: "not pushed; " + e.location()}
	}

	return fmt.Errorf("%w\n%s", err, e.location())
}

// loop opens the editor and pushes, until the push succeeds or the user gives up.
func (c *editCommand) loop(ctx context.Context, e *edited) error {
	for {
		c.Stop.Finish(true) // let the editor handle the signal, so the text is not lost
		err := e.openEditor()
		c.Stop.Finish(false)
		if err != nil {
			return fmt.Errorf("not pushed: %w", err)
		}
		select {
		case <-c.Stop.Requested():
			return fmt.Errorf("not pushed: %w", cli.ErrInterrupted)
		default:
		}
		changed, err := e.IsChanged()
		switch {
		case err != nil:
			return err
		case !changed:
			c.Print.Remark("%s is unchanged, not pushed", e.current.Key)
			return nil
		}
		err = c.pushEdited(ctx, e)
		var problems model.Problems
		if !errors.As(err, &problems) || !c.CanAsk() {
			return err
		}
		cli.Report(c.Print.Err, &cli.ExitError{Code: cli.ExitFailed, Err: problems, Note: "not pushed"})
		if !c.Ask("Edit it again?", true) {
			return &cli.ExitError{Code: cli.ExitFailed, Err: errors.New("not pushed")}
		}
	}
}

// pushEdited checks and pushes the edited manifest. The user can fix an error of type model.Problems and try again.
func (c *editCommand) pushEdited(ctx context.Context, e *edited) error {
	target, name, err := fleet.ParseKey(e.current.Key)
	if err != nil {
		return err
	}
	push := assign.Push{Name: name, Targets: []fleet.Target{target}, Terms: e.terms}
	if push.Source, err = assign.ReadSource(e.Source, nil, c.checker(ctx, e.terms)); err != nil {
		return err
	}
	nodes, err := e.store.Nodes(ctx)
	if err != nil {
		return err
	}
	if err := c.checkConflicts(ctx, e.store, push, nodes); err != nil {
		return err
	}
	value, _, bundle, err := push.Value(ctx)
	if bundle != nil {
		defer os.Remove(bundle.Name()) // the system cleans up after a failed removal
		defer bundle.Close()
	}
	if err != nil {
		return err
	}
	if err := c.show(ctx, e, value, bundle); err != nil {
		return err
	}
	WarnUnknown(c.Log, push.Targets, nodes)
	if c.preview {
		err = c.confirmPreview(ctx, opened{selection{known: nodes}, e.store, e.signer}, push)
	} else if !c.yes {
		err = c.Confirm("not pushed", fmt.Sprintf("this replaces revision %d of %s", e.current.Revision, e.current.Key))
	}
	if err != nil {
		return err
	}

	return c.replace(ctx, e, value, bundle)
}

// show prints the changes. If the opened revision has no valid signature, it first prints all content that
// the new signature will cover.
func (c *editCommand) show(ctx context.Context, e *edited, value []byte, bundle *os.File) error {
	if e.signer != nil && !c.yes && !e.signer.Signed(ctx, e.current, 1) {
		c.Log.Warn(fmt.Sprintf("revision %d has no valid signature from the given keys; your signature will cover all of its content", e.current.Revision), "key", e.current.Key)
		content, err := signed.Content(e.current.Value)
		if err != nil {
			return err
		}
		shown, err := NewSigningPreview(ctx, e.store, signed.Statement{Action: signed.Assign, Target: e.current.Key, Content: string(content)}, e.current)
		if err != nil {
			return err
		}
		shown.ShowContent(c.Print)
		shown.ShowFiles(c.Print)
	}
	before, err := e.store.Content(ctx, e.current)
	if err != nil {
		return err
	}
	after, err := assign.ReadContent(ctx, model.Entry{Key: e.current.Key, Revision: e.current.Revision, Value: value}, func(context.Context, string) (io.ReadCloser, error) {
		if _, err := bundle.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		return io.NopCloser(bundle), nil
	})
	if err != nil {
		return err
	}
	diff, err := before.Diff(ctx, after.As("edited"))
	if err == nil {
		c.Print.Diff(diff)
	}

	return err
}

// replace stores the bundle, if any, signs the value, and replaces the opened revision.
func (c *editCommand) replace(ctx context.Context, e *edited, value []byte, bundle *os.File) error {
	key := e.current.Key
	if bundle != nil {
		if _, err := kvstore.NewContent(e.store.KV).PutBundle(ctx, bundle); err != nil {
			return fmt.Errorf("%s: store bundle: %w", key, err)
		}
	}
	if e.signer != nil {
		var err error
		if value, err = e.signer.Sign(ctx, signed.Assign, key, value, e.current.Value); err != nil {
			return err
		}
	}
	revision, err := e.store.Replace(ctx, e.current, value, false)
	switch {
	case errors.Is(err, kvstore.ErrAssignmentChanged):
		return c.changed(ctx, e)
	case errors.Is(err, model.ErrTooLarge):
		return fmt.Errorf("%w\npush it as a bundle, which has no size limit: muster fleet push --bundle", err)
	case err != nil:
		return err
	}
	what := ""
	if bundle != nil {
		what = " bundle"
	}
	c.Print.Printf("%s revision %d%s %s\n", key, revision, what, document.AssignedDigest(key, value))

	return nil
}

// changed reports that another user pushed or removed the assignment during the edit.
func (c *editCommand) changed(ctx context.Context, e *edited) error {
	key, opened := e.current.Key, e.current.Revision
	all, err := e.store.History(ctx, key)
	if err != nil {
		return err
	}
	now := all[len(all)-1]
	if now.Deleted {
		return fmt.Errorf("not pushed: %s was removed with revision %d while you edited revision %d", key, now.Revision, opened)
	}

	return fmt.Errorf("not pushed: another user pushed revision %d of %s while you edited revision %d; run muster fleet diff %d %d and edit again", now.Revision, key, opened, opened, now.Revision)
}

// editor returns the command of the user's editor. The default, vi, needs a terminal.
func editor(isTerminal bool) ([]string, error) {
	name := "VISUAL"
	if os.Getenv(name) == "" {
		name = "EDITOR"
	}
	if os.Getenv(name) == "" && !isTerminal {
		return nil, cli.Usagef("no editor: vi needs a terminal; set $VISUAL or $EDITOR to another editor")
	}
	text := cmp.Or(os.Getenv(name), "vi")
	argv, err := shellquote.Split(text)
	if err != nil {
		return nil, cli.Usagef("$%s %q: %w", name, text, err)
	}
	if len(argv) == 0 {
		return nil, cli.Usagef("$%s is blank; set it to an editor", name)
	}

	return argv, nil
}

// location describes where the edited text is.
func (e *edited) location() string {
	if e.IsBundle {
		return "your edited text is in " + e.Source
	}

	return "your edited text is in " + e.Manifest
}

// openEditor opens the manifest in the editor and waits.
func (e *edited) openEditor() error {
	code, err := command.Interactive(append(slices.Clone(e.argv), e.Manifest))
	switch {
	case errors.Is(err, command.ErrNotFound):
		return cli.Usagef("no editor: %w; set $VISUAL or $EDITOR", err)
	case err != nil:
		return err
	case code != 0:
		return fmt.Errorf("editor %s exited with code %d", e.argv[0], code)
	}

	return nil
}
