package fleetcmd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// maxReading is how long it takes at most to read the results that there are.
const maxReading = 2 * time.Minute

// Continue is the flag that goes on with a request that was sent before.
type Continue struct{ From string }

// AddContinue adds the flag.
func (c *Continue) AddContinue(cmd *fisk.CmdClause) {
	cmd.Flag("continue", "Continue the request with this id: send the same request to the targets without a result").PlaceHolder("ID").StringVar(&c.From)
}

// Check returns the usage error of an id that is none.
func (c *Continue) Check(env *cli.Env) error {
	if env.Given("continue") && (c.From == "" || !model.IsRequestID(c.From)) {
		return cli.Usagef("--continue: the id of a request is one line of at most %d bytes", model.MaxRequestID)
	}

	return nil
}

// Alone returns the usage error of the flag beside one that sends nothing.
func (c *Continue) Alone(env *cli.Env, other string) error {
	if env.Given("continue") {
		return cli.Usagef("--continue sends a request, and %s does not: leave one out", other)
	}

	return nil
}

// Rest returns those of the targets without a result in answers of a protocol; none are left where all have one.
func (c *Continue) Rest(ctx context.Context, store *kvstore.Store, env *cli.Env, to RequestSelection, protocol string) (RequestSelection, error) {
	all := ask.NodesOf(to.List, to.Known)
	results := ask.NewResults(c.From, protocol, all)
	if err := (Resumed{ID: c.From, Within: maxReading}).read(ctx, store, env, false, results); err != nil {
		return to, err
	}
	has := map[string]bool{}
	for _, answer := range results.Ensured(to.Known).Answers {
		has[answer.Node] = true
	}
	if len(has) == 0 {
		return to, fmt.Errorf("none of the targets has a result of request %s: nothing was sent; to send it to all of them leave --continue out", print.Text(c.From))
	}
	rest := slices.DeleteFunc(all, func(node string) bool { return has[node] })
	to.List, to.all, to.selected = fleet.Targets(rest, nil, false), 0, true

	return to, nil
}
