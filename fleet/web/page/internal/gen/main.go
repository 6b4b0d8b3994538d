// Command gen writes the Go code of the templates; go generate ./fleet/web/page runs it in that
// folder.
package main

import (
	"fmt"
	"os"

	"github.com/musterfleet/muster/fleet/web/page/internal/build"
)

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	all, err := build.All(dir)
	if err != nil {
		return err
	}
	for path, code := range all {
		if err := os.WriteFile(path, code, 0o644); err != nil {
			return err
		}
	}

	return nil
}
