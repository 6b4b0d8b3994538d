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
	a.addTypeCommands(cmd, func(t *resource.Type, properties resource.Value) error { return a.ensure(ctx, c, t, properties) })
	api := cmd.Command("api", "Ensure by documents instead of flags")
	pipe := api.Command("pipe", "Read an ensure request from standard input and print the response")
	pipe.HelpLong(`  echo '{"protocol":"` + model.ProtocolEnsureRequest + `","type":"exec","properties":{"name":"/bin/true"}}' | muster ensure api pipe`)
	pipe.Flag("yaml", "Print the response as YAML").UnNegatableBoolVar(&c.yaml)
	pipe.Action(a.action(func() error { return a.ensurePipe(ctx, c) }))
}

func (a *app) ensure(ctx context.Context, c *ensureCommand, t *resource.Type, properties resource.Value) error {
	r, problems := resource.Decode(t, properties, model.Position{})
	if problems != nil {
		return problems
	}
	run, err := a.ensureOne(ctx, c, r, c.dryRun, nil)
	if err != nil {
		return err
	}

	return exitOf(!run.OK(), run.Counts.Changed > 0, c.detailed)
}

func (a *app) ensureOne(ctx context.Context, c *ensureCommand, r *resource.Resource, noop bool, each func(*model.Transaction)) (*model.Run, error) {
	nodeFacts, err := a.gather(ctx, c.inputs)
	if err != nil {
		return nil, err
	}

	session, err := a.openSession()
	if err != nil {
		return nil, err
	}

	return a.reconcile(ctx, reconciliation{
		session: session, resources: []*resource.Resource{r}, manifest: "ensure " + r.Ref().String(), command: "ensure " + r.Ref().String(), facts: nodeFacts,
		scope: resource.Scope{Noop: noop, Dir: workingDir(), MaxDepth: maxDepth, Origin: a.loader(nil).Origin(nil)}, noWait: c.noWait,
		diff: c.diff || noop, asJSON: c.asJSON, each: each,
	})
}

// workingDir is what a relative source is under, empty when it is gone.
func workingDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}

	return dir
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
	r, err := loader.DecodeOne(request.Type, properties)
	if err != nil {
		return nil, err
	}
	var state *model.Transaction
	if _, err := a.ensureOne(ctx, c, r, request.Noop, func(t *model.Transaction) { state = t }); err != nil {
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
		r, problems := resource.DecodeQuestion(t, properties, model.Position{})
		if len(problems) > 0 {
			return problems
		}
		nodeFacts, err := a.gather(ctx, inputs{})
		if err != nil {
			return err
		}
		state, err := engine.Status(ctx, resource.Env{Host: a.host(), Facts: nodeFacts, Log: a.log, Scope: resource.Scope{Dir: workingDir(), Origin: a.loader(nil).Origin(nil)}}, r)
		if err != nil {
			return err
		}
		return a.printDocument(state, asYAML)
	})
}
