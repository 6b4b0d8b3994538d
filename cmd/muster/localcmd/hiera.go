package localcmd

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/choria-io/fisk"
	"github.com/tidwall/gjson"

	"github.com/musterfleet/muster/cmd/muster/cli"
)

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
