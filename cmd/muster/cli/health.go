package cli

import (
	"github.com/musterfleet/muster/resources/health"
	"github.com/musterfleet/muster/resources/host"
)

// GossCommand is the hidden command that evaluates goss rules.
const GossCommand = "evaluate-goss-rules"

// self is the running program, also after its file was replaced.
const self = "/proc/self/exe"

// Checker returns what makes health checks; goss rules run in a process of muster.
func Checker(h *host.Host) *health.Checker { return health.New(h, self, GossCommand) }
