// Package localcmd holds the commands about this machine: apply, ensure, status,
// graph, facts, data, session and schema.
package localcmd

import (
	"context"
	"fmt"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/schemas"
)

// Add adds the commands to the command line.
func Add(env *cli.Env, app *fisk.Application) {
	addApply(env, app)
	addGraph(env, app)
	addEnsure(env, app)
	addStatus(env, app)
	addFacts(env, app)
	addData(env, app)
	addHiera(env, app)
	addSchema(env, app)
	addSession(env, app)
}

func addSchema(env *cli.Env, app *fisk.Application) {
	var name string
	cmd := app.Command("schema", "Show the JSON Schemas of muster's documents")
	cmd.HelpLong("  muster schema             list them\n  muster schema manifest    print one\n\n" +
		"An editor with the YAML language server completes and checks a manifest that begins with\n\n  # yaml-language-server: $schema=" + schemas.URL("manifest"))
	cmd.Arg("name", "Schema to print").HintOptions(schemas.Names()...).StringVar(&name)
	cmd.Action(env.Action(func(context.Context) error {
		if name == "" {
			return listSchemas(env)
		}
		text, err := schemas.Get(name)
		if err != nil {
			return cli.Usagef("%w", err)
		}
		_, err = env.Print.Out.Write(text)
		return err
	}))
}

func listSchemas(env *cli.Env) error {
	for _, d := range schemas.Documents() {
		if _, err := fmt.Fprintf(env.Print.Out, "%-16s %s\n", d.Name, d.Summary); err != nil {
			return err
		}
	}

	return nil
}
