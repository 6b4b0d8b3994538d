// Command house prints the sizes of the tree that it is run in.
package main

import (
	"fmt"
	"os"

	"github.com/musterfleet/muster/testing/arch"
)

func main() {
	tree, err := arch.Load(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	arch.Print(os.Stdout, tree)
}
