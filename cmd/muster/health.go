package main

import (
	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/resources/health"
	"github.com/musterfleet/muster/resources/health/goss"
	"github.com/musterfleet/muster/resources/host"
)

// gossCommand is the command that muster starts itself by to evaluate rules of goss.
const gossCommand = "evaluate-goss-rules"

// self is the program that runs, also after its file was replaced.
const self = "/proc/self/exe"

// checker makes health checks.
func checker(h *host.Host) *health.Checker { return health.New(h, self, gossCommand) }

func (a *app) addGoss(cli *fisk.Application) {
	cmd := cli.Command(gossCommand, "Evaluate rules of goss, given as JSON on standard input").Hidden()
	cmd.Action(a.action(func() error {
		if code := goss.Main(a.stdin, a.stdout); code != exitOK {
			return &exitError{code: code}
		}
		return nil
	}))
}
