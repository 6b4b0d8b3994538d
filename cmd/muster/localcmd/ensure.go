package localcmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

const ensureDataHelp = "Data for expressions, from a file, kv://bucket/key or http(s)://; default: the file .hiera"

// ensureCommand is muster ensure.
type ensureCommand struct {
	runner
	cli.Inputs
	noop, yaml, raw bool
}

func addEnsure(env *cli.Env, app *fisk.Application) {
	c := &ensureCommand{runner: runner{Env: env}}
	cmd := app.Command("ensure", "Ensure the state of one resource of this machine")
	cmd.HelpLong("  muster ensure file /etc/motd --content 'hello' --owner root --group root --mode 0644\n\n" +
		"In a session (see muster session) require and subscribe reach the resources of earlier commands.")
	cmd.Flag("noop", "Show what would change, and change nothing").UnNegatableBoolVar(&c.noop)
	cli.OldFlag(cmd, "dry-run").UnNegatableBoolVar(&c.noop)
	c.addFlags(cmd, "Show diffs of files; default with --noop", "Print the transaction event")
	c.AddFacts(cmd)
	c.AddHiera(cmd, ensureDataHelp)
	c.AddMaxDepth(cmd)
	c.AddReadEnv(cmd)
	cmd.Flag("raw", "Evaluate no expressions in arguments, flags and requests").UnNegatableBoolVar(&c.raw)
	taken := append(cli.FlagNames(cmd), flagIf, flagUnless)
	env.AddTypes(cmd, cli.TypeCommands{Taken: taken, Decode: resource.Decode, Evaluated: func() bool { return !c.raw }, More: c.addMore, Act: c.run})
	api := cmd.Command("api", "Ensure by documents instead of flags")
	pipe := api.Command("pipe", "Read an ensure request from standard input and print the response").Alias("piped")
	pipe.HelpLong("The response is printed also where the request is not valid.\n\n" + `  echo '{"protocol":"` + model.ProtocolEnsureRequest + `","type":"exec","properties":{"name":"/bin/true"}}' | muster ensure api pipe`)
	c.AddOnlyData(pipe, ensureDataHelp)
	pipe.Flag("yaml", "Print the response as YAML").UnNegatableBoolVar(&c.yaml)
	pipe.Action(env.Action(c.pipe))
}

func (c *ensureCommand) run(ctx context.Context, t *resource.Type, properties document.Value) error {
	run, err := c.one(ctx, model.EnsureRequest{Type: t.Name, Noop: c.noop}, properties, nil)
	if err != nil {
		return err
	}

	return c.conclude(ctx, run)
}

// one runs one resource, and the resources of a manifest that it includes.
// If each is set, it receives the transaction of the resource.
func (c *ensureCommand) one(ctx context.Context, req model.EnsureRequest, properties document.Value, each func(*model.Transaction)) (*model.Run, error) {
	if err := c.CheckMaxDepth(); err != nil {
		return nil, err
	}
	loader := c.Loader(nil)
	in, err := requestInputs(ctx, c.Env, loader, c.Inputs)
	if err != nil {
		return nil, err
	}
	session, err := openSession(ctx, c.Host())
	if err != nil {
		return nil, err
	}
	in.Known = session.known
	resolve := loader.ResolveDeclared
	if c.raw {
		resolve = loader.ResolveOne
	}
	resolved, err := resolve(ctx, req.Type, properties, in)
	if err != nil {
		return nil, err
	}
	for _, w := range resolved.Warnings {
		c.Log.Warn(w.Error())
	}
	asked := resolved.Resources[len(resolved.Resources)-1].Ref()
	r := reconciliation{
		session: session, resources: resolved.Resources, secrets: resolved.Secrets, manifest: "ensure " + asked.String(), command: "ensure " + asked.String(), facts: in.Facts,
		scope:   resource.Scope{Noop: req.Noop, Dir: in.Dir, Author: in.Author, Origin: loader.Origin(resolved)},
		request: true, check: req.Check,
		diff: c.diff || req.Noop && !c.Given("diff"),
	}
	if each != nil {
		r.each = func(t *model.Transaction) {
			if t.Ref() == asked {
				each(t)
			}
		}
	}

	return c.reconcile(ctx, r)
}

// requestInputs returns the inputs of a request; relative paths are below the
// working directory, and so may be what belongs to its owner.
func requestInputs(ctx context.Context, env *cli.Env, loader *manifest.Loader, in cli.Inputs) (manifest.Inputs, error) {
	nodeFacts, err := env.Facts(ctx, in)
	if err != nil {
		return manifest.Inputs{}, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return manifest.Inputs{}, err
	}
	author, err := paths.AuthorIn(dir)
	if err != nil {
		return manifest.Inputs{}, err
	}
	inputs := manifest.Inputs{Dir: dir, Author: author, Facts: nodeFacts, MaxDepth: in.MaxDepth}
	data, err := requestData(ctx, env, loader, in, inputs)
	inputs.Data, inputs.Untrusted = data.Values, data.Untrusted

	return inputs, err
}

// hieraFile is a file in the working directory with the data of requests.
const hieraFile = ".hiera"

// requestData returns the data of a request: from the flags, or from .hiera. It skips a .hiera that users other than root
// and the caller may write to, with a warning.
func requestData(ctx context.Context, env *cli.Env, loader *manifest.Loader, in cli.Inputs, inputs manifest.Inputs) (data manifest.Data, err error) {
	source, flag, err := in.DataSource()
	if err != nil {
		return data, err
	}
	if source != "" {
		data, err = loader.LoadData(ctx, source, inputs)
		return data, cli.FileError(flag, source, err)
	}
	inputs.Author = paths.Author{}
	if _, err := files.ReadTrusted(hieraFile, manifest.DefaultMaxBytes, inputs.Author); err != nil {
		if !errors.Is(err, fs.ErrNotExist) { // any user can make a .hiera in a directory such as /tmp
			env.Log.Warn("data ignored", "file", hieraFile, "error", err)
		}
		return data, nil
	}

	return loader.LoadData(ctx, hieraFile, inputs)
}

// pipe answers a request; any problem with it is an answer too.
func (c *ensureCommand) pipe(ctx context.Context) error {
	if c.Given("diff") {
		return cli.Usagef("--diff does not apply to requests: the response contains the diffs")
	}
	response := model.EnsureResponse{Protocol: model.ProtocolEnsureResponse}
	state, err := c.request(ctx)
	failed := err != nil
	if failed {
		response.Error = err.Error()
	} else {
		response.State, failed = state, !state.OK()
	}
	if err := c.Print.Document(response, c.yaml); err != nil {
		return err
	}

	changed := response.State != nil && response.State.Changed

	return exitOf(failed, changed, c.detailed)
}

func (c *ensureCommand) request(ctx context.Context) (*model.Transaction, error) {
	source, err := c.Loader(nil).Fetch(ctx, cli.Stdin)
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
	request.Noop = request.Noop || c.noop
	if _, err := c.one(ctx, request, properties, func(t *model.Transaction) { state = t }); err != nil {
		return nil, err
	}

	return state, nil
}

// statusCommand is muster status.
type statusCommand struct {
	*cli.Env
	print.Format
}

func addStatus(env *cli.Env, app *fisk.Application) {
	c := &statusCommand{Env: env}
	cmd := app.Command("status", "Show the state of one resource of this machine")
	cmd.HelpLong("Changes nothing. Properties besides the name say what to look at.\n\n  muster status file /etc/motd")
	cmd.Flag("json", "Print as JSON (default)").UnNegatableBoolVar(&c.JSON)
	cmd.Flag("yaml", "Print as YAML").UnNegatableBoolVar(&c.YAML)
	env.AddTypes(cmd, cli.TypeCommands{Decode: resource.DecodeQuestion, Question: true, Evaluated: func() bool { return true }, Act: c.run})
}

func (c *statusCommand) run(ctx context.Context, t *resource.Type, properties document.Value) error {
	loader := c.Loader(nil)
	in, err := requestInputs(ctx, c.Env, loader, cli.Inputs{})
	if err != nil {
		return err
	}
	in.ObserveOnly = true
	resolved, err := loader.ResolveDeclared(ctx, t.Name, properties, in)
	if err != nil {
		return err
	}
	state, err := engine.Status(ctx, resource.Env{Host: c.Host(), Facts: in.Facts, Log: c.Log, Scope: resource.Scope{Dir: in.Dir, Author: in.Author, Origin: loader.Origin(resolved)}}, resolved.Resources)
	if err != nil {
		return err
	}

	return c.Print.Document(state, c.YAML)
}
