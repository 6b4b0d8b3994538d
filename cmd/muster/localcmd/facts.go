package localcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/choria-io/fisk"
	"github.com/tidwall/gjson"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/manifest"
)

// queryCommand prints a document, or what a GJSON path finds in it.
type queryCommand struct {
	*cli.Env
	cli.Inputs
	print.Format
	source, query string
}

func (c *queryCommand) add(cmd *fisk.CmdClause) {
	cmd.Arg("query", "GJSON path of the value to show").StringVar(&c.query)
	c.addFormat(cmd)
	c.AddFacts(cmd)
}

func (c *queryCommand) addFormat(cmd *fisk.CmdClause) {
	cmd.Flag("json", "Print as JSON (default, except for a single text)").UnNegatableBoolVar(&c.JSON)
	cmd.Flag("yaml", "Print as YAML").UnNegatableBoolVar(&c.YAML)
}

func addFacts(env *cli.Env, app *fisk.Application) {
	c := &queryCommand{Env: env}
	cmd := app.Command("facts", "Show the facts of this machine")
	cmd.HelpLong("  muster facts host.info.platformFamily\n\nFacts come from the system, then facts.json, facts.yaml and facts.d in the configuration directory, then the flags.")
	c.add(cmd)
	cmd.Action(env.Action(func(ctx context.Context) error {
		all, err := env.Facts(ctx, c.Inputs)
		if err != nil {
			return err
		}
		return c.print(all, "fact")
	}))
}

func addData(env *cli.Env, app *fisk.Application) {
	c := &queryCommand{Env: env}
	cmd := app.Command("data", "Hierarchical data").Command("resolve", "Show the data of a manifest or data file, with its hierarchy resolved")
	cmd.HelpLong("Expressions are evaluated with the facts of this machine.\n\n  muster data resolve data.yaml --fact role=web\n  muster data resolve kv://MUSTER_DATA/common package_name")
	cmd.Arg("source", "Path, -, kv://bucket/key or http(s)://").Required().StringVar(&c.source)
	c.add(cmd)
	c.AddData(cmd, dataHelp)
	c.AddReadEnv(cmd)
	cmd.Action(env.Action(func(ctx context.Context) error {
		resolved, err := c.resolve(ctx)
		if err != nil {
			return err
		}
		return c.print(resolved, "data")
	}))
}

// resolve returns the data of a manifest or of a data file, overridden by --data.
// Both may belong to the owner of the working directory.
func (c *queryCommand) resolve(ctx context.Context) (map[string]any, error) {
	facts, err := c.LazyFacts(c.Inputs)
	if err != nil {
		return nil, err
	}
	author, err := paths.AuthorIn(".")
	if err != nil {
		return nil, err
	}
	loader := c.Loader(facts)
	source, err := loader.FetchTrusted(ctx, cmp.Or(c.source, cli.Stdin), author)
	if err != nil {
		return nil, cli.FileError("manifest or data", c.source, err)
	}
	defer cli.CleanUp(c.Log, source.Close)
	doc, err := loader.Parse(source)
	if err != nil || !doc.HasResources() {
		doc, err = manifest.ParseData(source.Name, source.Data)
	}
	if err != nil {
		return nil, err
	}
	data, err := externalData(ctx, c.Env, loader, c.Inputs, author)
	if err != nil {
		return nil, err
	}

	return loader.ResolveData(ctx, doc, manifest.Inputs{Data: data.Values, Dir: source.Dir, Author: source.Author})
}

func (c *queryCommand) print(v any, what string) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}

	return c.Print.Query(c.Format, text, c.query, what)
}

// hieraCommand is muster hiera parse, which scripts for CCM use instead of muster data resolve.
type hieraCommand struct {
	queryCommand
	systemFacts, environFacts, variables bool
	prefix                               string
}

func addHiera(env *cli.Env, app *fisk.Application) {
	c := &hieraCommand{queryCommand: queryCommand{Env: env}}
	cmd := app.Command("hiera", "The same as data, with the flags of CCM").Hidden().Command("parse", "Show the data of a manifest or data file, with its hierarchy resolved").Alias("resolve")
	cmd.HelpLong("Uses the facts of the command line only. New scripts use muster data resolve.\n\n  muster hiera parse data.yaml role=web")
	cmd.Arg("source", "Path, -, kv://bucket/key or http(s)://").Required().StringVar(&c.source)
	cmd.Arg("fact", "Facts, each NAME=VALUE; dots in the name nest it").StringsVar(&c.FactArguments)
	cmd.Flag("query", "GJSON path of the value to show").StringVar(&c.query)
	c.addFormat(cmd)
	cmd.Flag("env", "Print variables of the environment").UnNegatableBoolVar(&c.variables)
	cmd.Flag("env-prefix", "Prefix of the variables").Default("HIERA").StringVar(&c.prefix)
	cmd.Flag("system-facts", "Add the facts of this machine").Short('S').UnNegatableBoolVar(&c.systemFacts)
	cmd.Flag("env-facts", "Add the variables of the environment as facts").Short('E').UnNegatableBoolVar(&c.environFacts)
	c.AddFacts(cmd)
	c.AddData(cmd, dataHelp)
	c.AddDataFile(cmd)
	c.AddReadEnv(cmd)
	cmd.Action(env.Action(c.run))
}

func (c *hieraCommand) run(ctx context.Context) error {
	c.NoSystemFacts = !c.systemFacts
	if c.environFacts {
		c.Environ = cli.Environ()
	}
	data, err := c.resolve(ctx)
	if err != nil {
		return err
	}
	if !c.variables {
		return c.print(data, "data")
	}

	return c.printVariables(data)
}

// printVariables prints a mapping as variables that a shell can read.
func (c *hieraCommand) printVariables(data map[string]any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	values := gjson.ParseBytes(text)
	if c.query != "" {
		values = values.Get(c.query)
	}
	if !values.IsObject() {
		return cli.Usagef("--env needs a mapping: --query %q selects another value", c.query)
	}
	all := values.Map()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		c.Print.Printf("%s=%s\n", variableName(c.prefix, key), quoted(all[key].String()))
	}

	return nil
}

// invalidInNames matches the characters that are invalid in variable names.
var invalidInNames = regexp.MustCompile(`[^A-Z0-9_]`)

func variableName(prefix, key string) string {
	if prefix != "" {
		key = prefix + "_" + key
	}

	return invalidInNames.ReplaceAllString(strings.ToUpper(key), "_")
}

// plainValue matches values that need no quotes in a shell.
var plainValue = regexp.MustCompile(`^[\w@%+=:,./-]*$`)

// quoted returns a value for a shell, in quotes if it needs them.
func quoted(value string) string {
	if plainValue.MatchString(value) {
		return value
	}

	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
