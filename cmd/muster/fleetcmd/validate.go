package fleetcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
)

// validateCommand implements muster validate. It runs the checks of a push.
type validateCommand struct {
	pushCommand
	sources []string
}

// addValidate adds muster validate.
func addValidate(env *cli.Env, app *fisk.Application) {
	c := &validateCommand{pushCommand: pushCommand{Env: env}}
	cmd := app.Command("validate", "Check manifests without applying or pushing them")
	cmd.HelpLong("Finds errors that muster fleet push would refuse: properties, relations, files beside the manifest. It needs neither NATS nor the target machine, and skips values that depend on facts, environment or buckets. It warns of a file name that is not valid as the name of a manifest; use --name to push it with another name. Exit code 0: all manifests are valid.\n\n" +
		"  muster validate motd.yaml\n  muster validate site/ *.yaml\n  muster apply --noop motd.yaml     show the changes on this machine")
	cmd.Arg("source", "Files, directories with manifest.yaml, or - for standard input").Required().StringsVar(&c.sources)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

// validated is the result for a manifest.
type validated struct {
	Source string `json:"source"`
	Valid  bool   `json:"valid"`
	// Problems are the problems in the manifest; Error is why it cannot be read.
	Problems []model.Problem `json:"problems,omitempty"`
	Error    string          `json:"error,omitempty"`
}

func (c *validateCommand) run(ctx context.Context) error {
	var problems model.Problems
	var failed []error
	valid, all := 0, make([]validated, 0, len(c.sources))
	for _, name := range c.sources {
		name = cmp.Or(name, cli.Stdin)
		read, err := assign.ReadSource(name, c.Stdin, c.checker(ctx, model.Assignment{}))
		var found model.Problems
		one := validated{Source: name, Valid: err == nil}
		switch {
		case errors.As(err, &found):
			problems = append(problems, found...)
			one.Problems = found.Sorted()
		case err != nil:
			err = unread(name, err)
			failed, one.Error = append(failed, err), err.Error()
		default:
			valid++
			if !c.IsDocument() {
				c.Print.Printf("%s: valid\n", print.Text(name))
			}
			if err := model.CheckName(read.Name); err != nil && read.Name != "" {
				c.Log.Warn("file name is not a valid manifest name; push it with --name NAME", "manifest", name, "error", err)
			}
		}
		all = append(all, one)
	}
	if c.IsDocument() {
		if err := c.Print.Document(all, c.YAML); err != nil {
			return err
		}
	}
	if len(problems) == 0 {
		return errors.Join(failed...)
	}
	for _, err := range failed {
		cli.Report(c.Print.Err, err)
	}

	return &cli.ExitError{Code: cli.ExitFailed, Err: problems, Note: fmt.Sprintf("%d of %s valid", valid, print.Count(len(c.sources), "manifest"))}
}

// unread returns the error for an unreadable manifest.
func unread(name string, err error) error {
	var missing *manifest.NoManifestError
	if errors.As(err, &missing) && len(missing.Others) != 1 {
		missing.Others = nil
		return fmt.Errorf("%w; a directory is one manifest with its files; to validate several manifests, list them, as in muster validate *.yaml", err)
	}

	return cli.FileError("manifest", name, err)
}
