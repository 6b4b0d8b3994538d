// Command gen fills in the tables of the pages of the resource types, and writes the document
// of the API; go generate ./docs runs it in that folder.
package main

import (
	"fmt"
	"os"

	"github.com/musterfleet/muster/docs/internal/tables"
	"github.com/musterfleet/muster/fleet/web/api"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/resource"
)

func main() {
	if err := write(resources.All()); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func write(types resource.Types) error {
	for _, t := range types {
		err := rewrite("types/"+t.Name+".md", func(page string) (string, error) { return tables.Page(page, t) })
		if err != nil {
			return err
		}
	}

	spec, err := api.Spec()
	if err != nil {
		return err
	}
	if err := os.WriteFile("openapi.json", spec, 0o644); err != nil {
		return err
	}

	return rewrite("types/README.md", func(page string) (string, error) { return tables.Index(page, types) })
}

func rewrite(path string, change func(string) (string, error)) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, err := change(string(page))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}

	return os.WriteFile(path, []byte(changed), 0o644)
}
