package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// ensureCommand is muster ensure.
type ensureCommand struct {
	inputs
	dryRun, asJSON, noWait bool
	diff                   bool
	detailed               bool
	yaml                   bool
}

func (a *app) addEnsure(ctx context.Context, cli *fisk.Application) {
	c := &ensureCommand{}
	cmd := cli.Command("ensure", "Bring one resource of this machine into a state")
	cmd.HelpLong("  muster ensure file /etc/motd --content 'hello' --owner root --group root --mode 0644\n\n" +
		"Under a session (see muster session) require and subscribe reach the resources of earlier commands.")
	cmd.Flag("dry-run", "Change nothing, say what would be changed").UnNegatableBoolVar(&c.dryRun)
	cmd.Flag("diff", "Show what changes within files").UnNegatableBoolVar(&c.diff)
	cmd.Flag("json", "Print the transaction event").UnNegatableBoolVar(&c.asJSON)
	cmd.Flag("no-wait", "Fail when another run holds the lock").UnNegatableBoolVar(&c.noWait)
	cmd.Flag("detailed-exitcodes", "Exit 2 for changes, 4 for failures").UnNegatableBoolVar(&c.detailed)
	c.addFacts(cmd)
	c.addMaxDepth(cmd)
	a.addTypeCommands(cmd, func(t *resource.Type, properties resource.Value) error { return a.ensure(ctx, c, t, properties) })
	api := cmd.Command("api", "Ensure by documents instead of flags")
	pipe := api.Command("pipe", "Read an ensure request from standard input and print the response")
	pipe.HelpLong(`  echo '{"protocol":"` + model.ProtocolEnsureRequest + `","type":"exec","properties":{"name":"/bin/true"}}' | muster ensure api pipe`)
	pipe.Flag("yaml", "Print the response as YAML").UnNegatableBoolVar(&c.yaml)
	pipe.Action(a.action(func() error { return a.ensurePipe(ctx, c) }))
}

func (a *app) ensure(ctx context.Context, c *ensureCommand, t *resource.Type, properties resource.Value) error {
	run, err := a.ensureOne(ctx, c, t.Name, properties, c.dryRun, nil)
	if err != nil {
		return err
	}

	return exitOf(!run.OK(), run.Counts.Changed > 0, c.detailed)
}

// ensureOne runs one resource, with those of the manifest it includes. each, where
// it is set, gets the resource's own transaction.
func (a *app) ensureOne(ctx context.Context, c *ensureCommand, typ string, properties resource.Value, noop bool, each func(*model.Transaction)) (*model.Run, error) {
	if err := c.checkMaxDepth(); err != nil {
		return nil, err
	}
	in, err := a.requestInputs(ctx, c.inputs)
	if err != nil {
		return nil, err
	}
	session, err := a.openSession()
	if err != nil {
		return nil, err
	}
	in.Known = session.known
	resolved, err := a.loader(nil).ResolveOne(ctx, typ, properties, in)
	if err != nil {
		return nil, err
	}
	for _, w := range resolved.Warnings {
		a.log.Warn(w.Error())
	}
	asked := resolved.Resources[len(resolved.Resources)-1].Ref()
	r := reconciliation{
		session: session, resources: resolved.Resources, secrets: resolved.Secrets, manifest: "ensure " + asked.String(), command: "ensure " + asked.String(), facts: in.Facts,
		scope: resource.Scope{Noop: noop, Dir: in.Dir, Origin: a.loader(nil).Origin(nil)}, noWait: c.noWait,
		diff: c.diff || noop, asJSON: c.asJSON,
	}
	if each != nil {
		r.each = func(t *model.Transaction) {
			if t.Ref() == asked {
				each(t)
			}
		}
	}

	return a.reconcile(ctx, r)
}

// requestInputs are what goes into a request: what it names is beside the working
// directory.
func (a *app) requestInputs(ctx context.Context, in inputs) (manifest.Inputs, error) {
	nodeFacts, err := a.gather(ctx, in)
	if err != nil {
		return manifest.Inputs{}, err
	}
	dir, err := os.Getwd()

	return manifest.Inputs{Dir: dir, Facts: nodeFacts, MaxDepth: in.maxDepth}, err
}

// ensurePipe answers a request; whatever is wrong with it is an answer too.
func (a *app) ensurePipe(ctx context.Context, c *ensureCommand) error {
	response := model.EnsureResponse{Protocol: model.ProtocolEnsureResponse}
	failed := false
	state, err := a.ensureRequest(ctx, c)
	switch {
	case err != nil:
		response.Error, failed = err.Error(), true
	default:
		response.State, failed = state, !state.OK()
	}
	if err := a.printDocument(response, c.yaml); err != nil {
		return err
	}

	return exitOf(failed, false, false)
}

func (a *app) ensureRequest(ctx context.Context, c *ensureCommand) (*model.Transaction, error) {
	loader := a.loader(nil)
	source, err := loader.Fetch(ctx, "-")
	if err != nil {
		return nil, err
	}
	request, properties, err := manifest.ParseRequest("request", source.Data)
	if err != nil {
		return nil, err
	}
	if !request.Expires.IsZero() && !time.Now().Before(request.Expires) {
		return nil, fmt.Errorf("the request expired at %s and was not executed", request.Expires.Format(time.RFC3339))
	}
	var state *model.Transaction
	if _, err := a.ensureOne(ctx, c, request.Type, properties, request.Noop, func(t *model.Transaction) { state = t }); err != nil {
		return nil, err
	}

	return state, nil
}

// printDocument prints a document as indented JSON, or as YAML.
func (a *app) printDocument(v any, asYAML bool) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if asYAML {
		if text, err = toYAML(text); err != nil {
			return err
		}
	} else {
		text = append(text, '\n')
	}
	_, err = a.stdout.Write(text)

	return err
}

// statusCommand is muster status.
func (a *app) addStatus(ctx context.Context, cli *fisk.Application) {
	var asYAML bool
	cmd := cli.Command("status", "Show the state of one resource of this machine")
	cmd.HelpLong("  muster status file /etc/motd")
	cmd.Flag("json", "Print as JSON, which is the default").UnNegatableBoolVar(new(bool))
	cmd.Flag("yaml", "Print as YAML").UnNegatableBoolVar(&asYAML)
	a.addTypeCommands(cmd, func(t *resource.Type, properties resource.Value) error {
		in, err := a.requestInputs(ctx, inputs{})
		if err != nil {
			return err
		}
		resolved, err := a.loader(nil).ResolveQuestion(ctx, t.Name, properties, in)
		if err != nil {
			return err
		}
		state, err := engine.Status(ctx, resource.Env{Host: a.host(), Facts: in.Facts, Log: a.log, Scope: resource.Scope{Dir: in.Dir, Origin: a.loader(nil).Origin(nil)}}, resolved.Resources)
		if err != nil {
			return err
		}
		return a.printDocument(state, asYAML)
	})
}
