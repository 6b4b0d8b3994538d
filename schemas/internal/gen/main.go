// Command gen writes the JSON Schemas. go generate ./schemas runs it in that folder.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/schemas"
	"github.com/musterfleet/muster/schemas/internal/build"
)

func main() {
	if err := write("v1"); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// write writes all schemas to dir and removes other files.
func write(dir string) error {
	all, err := build.All(resources.All())
	if err != nil {
		return err
	}
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(dir, name+".json"), text, 0o644); err != nil {
			return err
		}
	}
	there, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	for _, path := range there {
		if !slices.Contains(schemas.Names(), strings.TrimSuffix(filepath.Base(path), ".json")) {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}

	return nil
}
