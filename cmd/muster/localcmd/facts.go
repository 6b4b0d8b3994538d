package localcmd

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/choria-io/fisk"

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
	defer c.CleanUp(source.Close)
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
