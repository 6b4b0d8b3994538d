package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/choria-io/fisk"
	"github.com/tidwall/gjson"
	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/resources/manifest"
)

func (a *app) addFacts(ctx context.Context, cli *fisk.Application) {
	var in inputs
	var query string
	var asJSON, asYAML bool
	cmd := cli.Command("facts", "Show what is known of this machine")
	cmd.HelpLong("  muster facts host.info.platformFamily\n\nFacts come from the system, then facts.json, facts.yaml and facts.d in the configuration directory, then the flags.")
	cmd.Arg("query", "A GJSON path of what to show").StringVar(&query)
	cmd.Flag("json", "Print as JSON, which is the default but for a single text").UnNegatableBoolVar(&asJSON)
	cmd.Flag("yaml", "Print as YAML").UnNegatableBoolVar(&asYAML)
	in.addFacts(cmd)
	cmd.Action(a.action(func() error {
		all, err := a.gather(ctx, in)
		if err != nil {
			return err
		}
		return a.printQuery(all, query, asJSON, asYAML)
	}))
}

func (a *app) addData(ctx context.Context, cli *fisk.Application) {
	var in inputs
	var source, query string
	var asJSON, asYAML bool
	data := cli.Command("data", "Hierarchical data")
	cmd := data.Command("resolve", "Show the data of a manifest or data file after its hierarchy was resolved")
	cmd.HelpLong("  muster data resolve data.yaml --fact role=web\n  muster data resolve kv://MUSTER_DATA/common package_name")
	cmd.Arg("source", "A path, -, kv://bucket/key or http(s)://").Required().StringVar(&source)
	cmd.Arg("query", "A GJSON path of what to show").StringVar(&query)
	cmd.Flag("json", "Print as JSON, which is the default but for a single text").UnNegatableBoolVar(&asJSON)
	cmd.Flag("yaml", "Print as YAML").UnNegatableBoolVar(&asYAML)
	in.add(cmd)
	cmd.Action(a.action(func() error {
		resolved, err := a.resolveData(ctx, source, in)
		if err != nil {
			return err
		}
		return a.printQuery(resolved, query, asJSON, asYAML)
	}))
}

// resolveData gives the data of a manifest or a source of data, with that of
// --data over it.
func (a *app) resolveData(ctx context.Context, from string, in inputs) (map[string]any, error) {
	loader := a.loader(a.lazyFacts(in))
	source, err := loader.Fetch(ctx, cmp.Or(from, stdinName))
	if err != nil {
		return nil, err
	}
	defer a.closing(source.Close)
	doc, err := loader.Parse(source)
	if err != nil || !doc.HasResources() {
		doc, err = manifest.ParseData(source.Name, source.Data)
	}
	if err != nil {
		return nil, err
	}
	external, err := a.externalData(ctx, loader, in)
	if err != nil {
		return nil, err
	}

	return loader.ResolveData(ctx, doc, manifest.Inputs{Data: external, Dir: source.Dir})
}

// printQuery prints all of a document, or what a GJSON path finds in it: a
// scalar as it is, for scripts, unless a form is asked for.
func (a *app) printQuery(v any, query string, asJSON, asYAML bool) error {
	if query == "" {
		return a.printDocument(v, asYAML)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	found := gjson.GetBytes(text, query)
	if !found.Exists() {
		return fmt.Errorf("there is nothing at %q", query)
	}
	if !found.IsObject() && !found.IsArray() && !asJSON && !asYAML {
		_, err = fmt.Fprintln(a.stdout, found.String())
		return err
	}

	return a.printDocument(json.RawMessage(found.Raw), asYAML)
}

// toYAML rewrites JSON, keeping the order of its keys.
func toYAML(text []byte) ([]byte, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, err
	}
	block(&node)

	return yaml.Marshal(&node)
}

// block takes away the JSON look of a document.
func block(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		block(c)
	}
}
