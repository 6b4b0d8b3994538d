package main

import (
	"fmt"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/schemas"
)

func (a *app) addSchema(cli *fisk.Application) {
	var name string
	cmd := cli.Command("schema", "Show the JSON Schemas of the documents that muster reads and writes")
	cmd.HelpLong("  muster schema             lists them\n  muster schema manifest    prints one\n\n" +
		"An editor with the YAML language server completes and checks a manifest that begins with\n\n  # yaml-language-server: $schema=" + schemas.URL("manifest"))
	cmd.Arg("name", "Which schema to print").HintOptions(schemas.Names()...).StringVar(&name)
	cmd.Action(a.action(func() error { return a.schema(name) }))
}

func (a *app) schema(name string) error {
	if name == "" {
		return a.listSchemas()
	}
	text, err := schemas.Get(name)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	_, err = a.stdout.Write(text)

	return err
}

func (a *app) listSchemas() error {
	for _, d := range schemas.Documents() {
		if _, err := fmt.Fprintf(a.stdout, "%-16s %s\n", d.Name, d.Summary); err != nil {
			return err
		}
	}

	return nil
}
