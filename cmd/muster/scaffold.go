package main

import (
	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/resources/scaffold/choria/render"
)

func (a *app) addRender(cli *fisk.Application) {
	cmd := cli.Command(render.Command, "Render the templates of a scaffold, as standard input asks for").Hidden()
	cmd.Action(a.action(func() error {
		render.Main(a.stdin, a.stdout)
		return nil
	}))
}
