package localcmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
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
	"github.com/musterfleet/muster/resources/manifest/expression"
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
	r := reconciliation{session: session, resources: resolved.Resources, diff: c.diff || req.Noop && !c.Given("diff")}
	r.Manifest = "ensure " + asked.String()
	r.journal, r.Command = r.Manifest, "muster "+r.Manifest
	r.Secrets, r.Outputs, r.Check, r.Env.Facts = resolved.Secrets, true, req.Check, in.Facts
	r.Env.Scope = resource.Scope{Noop: req.Noop, Dir: in.Dir, Author: in.Author, Origin: loader.Origin(resolved)}
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

// The flags of conditions.
const (
	flagIf     = "if"
	flagUnless = "unless"
)

// guard is the property with the guard command of an exec. Its flag is --exec-unless, because --unless is a condition.
const guard = "unless"

// moreFlags are the flags of muster ensure that set properties without a flag of the same name.
type moreFlags struct {
	*ensureCommand
	typ                 *resource.Type
	ifExpr, unless      textFlag
	check, tries, sleep textFlag
	contentFile         textFlag
}

// textFlag is a flag with a text.
type textFlag struct {
	name, text string
	set        bool
}

func (f *textFlag) add(cmd *fisk.CmdClause, name, placeHolder, help string) *fisk.FlagClause {
	f.name = name
	clause := cmd.Flag(name, help).PlaceHolder(placeHolder).IsSetByUser(&f.set)
	clause.StringVar(&f.text)

	return clause
}

// entry returns a property with the value of the flag.
func (f *textFlag) entry(key string) document.Entry {
	pos := model.Position{File: "--" + f.name}

	return document.Entry{Key: key, Pos: pos, Value: document.Value{Kind: document.String, Text: f.text, Pos: pos}}
}

// addMore adds the flags to the command of a type.
func (c *ensureCommand) addMore(cmd *fisk.CmdClause, t *resource.Type) func(document.Value) (document.Value, error) {
	m := &moreFlags{ensureCommand: c, typ: t}
	m.ifExpr.add(cmd, flagIf, "EXPR", "Manage it only when this expression is true")
	m.unless.add(cmd, flagUnless, "EXPR", "Do not manage it when this expression is true")
	m.check.add(cmd, "check", "COMMAND", "Command of one health check").Hidden()
	m.tries.add(cmd, "check-tries", "N", "Maximum number of tries of --check").Hidden()
	m.sleep.add(cmd, "check-sleep", "DURATION", "Time between tries of --check").Hidden()
	if _, has := t.Property("content"); has {
		m.contentFile.add(cmd, "content-file", "FILE", "Read the content from a file, and evaluate its expressions")
	}

	return m.entries
}

// entries adds the entries of the flags to the properties.
func (m *moreFlags) entries(v document.Value) (document.Value, error) {
	for _, add := range []func(document.Value) (document.Value, error){m.conditions, m.healthCheck, m.content} {
		var err error
		if v, err = add(v); err != nil {
			return v, err
		}
	}

	return v, nil
}

// conditions adds the property control. A text in --unless that is not a condition becomes the guard command of an exec.
func (m *moreFlags) conditions(v document.Value) (document.Value, error) {
	control := document.Entry{Key: "control", Value: document.Value{Kind: document.Map}}
	if m.ifExpr.set {
		control.Value.Entries = append(control.Value.Entries, m.ifExpr.entry(flagIf))
	}
	var invalid error
	_, hasGuard := m.typ.Property(guard)
	if m.unless.set && hasGuard {
		invalid = m.Loader(nil).CompileCondition(m.unless.text)
	}
	switch {
	case !m.unless.set:
	case invalid != nil:
		if err := m.checkGuard(v, invalid); err != nil {
			return v, err
		}
		v.Entries = append(v.Entries, m.unless.entry(guard))
	default:
		if hasGuard {
			m.Log.Info("--unless is a condition; a guard command is --exec-unless")
		}
		control.Value.Entries = append(control.Value.Entries, m.unless.entry(flagUnless))
	}
	if len(control.Value.Entries) == 0 {
		return v, nil
	}
	first := control.Value.Entries[0]
	if m.raw {
		return v, cli.Usagef("--raw evaluates no expressions: remove --raw or --%s", first.Key)
	}
	control.Pos, control.Value.Pos = first.Pos, first.Pos
	v.Entries = append(v.Entries, control)

	return v, nil
}

// checkGuard warns about a guard command in --unless, and rejects an invalid condition.
func (m *moreFlags) checkGuard(v document.Value, invalid error) error {
	if _, twice := v.Get(guard); twice {
		return cli.Usagef("two guard commands: remove --unless or --exec-unless")
	}
	if conditionLike.MatchString(cli.OutsideExpressions(m.unless.text)) {
		return cli.Usagef("--unless is not a valid expression: %w; correct it, or give a guard command with --exec-unless", invalid)
	}
	m.Log.Warn("--unless takes an expression; running its text as a guard command, write --exec-unless")

	return nil
}

// conditionLike matches texts that probably are expressions: they contain Facts, Data, Environ or lookup, or begin with a
// function call.
var conditionLike = regexp.MustCompile(`^\W*(Facts|Data|Environ)\b|^\W*\w+\(|\b(Facts|Data|Environ)\.\w|\blookup\(`)

// healthCheck adds the check of --check.
func (m *moreFlags) healthCheck(v document.Value) (document.Value, error) {
	const key = "health_checks"
	for _, f := range []*textFlag{&m.tries, &m.sleep} {
		if f.set && !m.check.set {
			return v, cli.Usagef("--%s applies to --check; give --check COMMAND", f.name)
		}
	}
	if !m.check.set {
		return v, nil
	}
	command := m.check.entry("command")
	check := document.Value{Kind: document.Map, Pos: command.Pos, Entries: []document.Entry{command}}
	if m.tries.set {
		check.Entries = append(check.Entries, m.tries.entry("tries"))
	}
	if m.sleep.set {
		check.Entries = append(check.Entries, m.sleep.entry("try_sleep"))
	}
	for i := range v.Entries {
		if v.Entries[i].Key == key {
			v.Entries[i].Value.Items = append(v.Entries[i].Value.Items, check)
			return v, nil
		}
	}
	v.Entries = append(v.Entries, document.Entry{Key: key, Pos: command.Pos, Value: document.Value{Kind: document.List, Pos: command.Pos, Items: []document.Value{check}}})

	return v, nil
}

// content adds the content of --content-file. muster evaluates its expressions, so it rejects a file that users other than
// the caller, root and the owner of the working directory may write to.
func (m *moreFlags) content(v document.Value) (document.Value, error) {
	const key = "content"
	if !m.contentFile.set {
		return v, nil
	}
	if _, twice := v.Get(key); twice {
		return v, cli.Usagef("give one of --content and --content-file")
	}
	if expression.MayHoldExpression(m.contentFile.text) {
		return v, cli.Usagef("--content-file %q: the path cannot hold expressions", m.contentFile.text)
	}
	text, err := m.readContent()
	if err != nil {
		return v, cli.FileError("--content-file", m.contentFile.text, err)
	}
	entry := m.contentFile.entry(key)
	entry.Value.Text = string(text)
	v.Entries = append(v.Entries, entry)

	return v, nil
}

func (m *moreFlags) readContent() ([]byte, error) {
	if m.raw {
		return files.Read(m.contentFile.text, manifest.DefaultMaxBytes)
	}
	// Expressions of the file read whatever the caller can read.
	return files.ReadTrusted(m.contentFile.text, manifest.DefaultMaxBytes, paths.Author{})
}
