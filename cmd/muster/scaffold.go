package main

import (
	"os"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/resources/scaffold/choria/render"
)

// addRender adds the command of the process that renders scaffolds. Its standard
// input is a socket, which it also writes to.
func (a *app) addRender(cli *fisk.Application) {
	cmd := cli.Command(render.Command, "Render the templates of a scaffold for the muster that started this").Hidden()
	cmd.Action(a.action(func() error {
		render.Main(os.Stdin)
		return nil
	}))
}
