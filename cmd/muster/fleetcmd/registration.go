package fleetcmd

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
)

// registrationCommand is a command with the flags that select registrations.
type registrationCommand struct {
	*cli.Env
	print.Format
	filter     kvstore.RegistrationFilter
	prometheus string
	yes        bool
}

// AddRegistration adds the commands to the command line.
func AddRegistration(env *cli.Env, app *fisk.Application) {
	parent := app.Command("registration", "Find the services that nodes register")
	parent.HelpLong("Resources register services with register_when_stable.\n\n" +
		"  muster registration query --service shop\n  muster registration watch\n  muster registration watch --prometheus /etc/prometheus/shop.json --protocol http")
	add := func(name, help string) (*registrationCommand, *fisk.CmdClause) {
		c, cmd := &registrationCommand{Env: env}, parent.Command(name, help)
		c.AddFormat(cmd)
		return c, cmd
	}
	c, cmd := add("init", "Create or update the stream of registrations; muster fleet init does it too")
	cmd.Action(env.Action(cli.UnlessNoop(c.init)))

	c, cmd = add("query", "Show the current registrations")
	c.addFilter(cmd)
	cmd.Flag("prometheus", "Write a file for Prometheus file discovery instead").PlaceHolder("FILE").StringVar(&c.prometheus)
	cmd.Action(env.Action(c.query))

	c, cmd = add("watch", "Show registrations as they change")
	c.addFilter(cmd)
	cmd.Flag("prometheus", "Keep a file for Prometheus file discovery up to date instead").PlaceHolder("FILE").StringVar(&c.prometheus)
	cmd.Action(env.Action(c.watch))

	c, cmd = add("rm", "Withdraw registrations; a node with a stable resource registers again")
	c.addFilter(cmd)
	cmd.Flag("yes", "Withdraw all, if no filter is given").Short('y').UnNegatableBoolVar(&c.yes)
	cmd.Action(env.Action(cli.UnlessNoop(c.rm)))
}

func (c *registrationCommand) addFilter(cmd *fisk.CmdClause) {
	cmd.Flag("cluster", "Filter by cluster").PlaceHolder("NAME").StringVar(&c.filter.Cluster)
	cmd.Flag("protocol", "Filter by protocol").PlaceHolder("NAME").StringVar(&c.filter.Protocol)
	cmd.Flag("service", "Filter by service").PlaceHolder("NAME").StringVar(&c.filter.Service)
	cli.NodeVar(cmd.Flag("node", "Filter by registering node").PlaceHolder("NODE").HintAction(c.CompleteNodes), &c.filter.Node)
	cmd.Flag("address", "Filter by address").PlaceHolder("ADDRESS").StringVar(&c.filter.Address)
}

func (c *registrationCommand) init(ctx context.Context) error {
	store, err := c.Store(ctx)
	if err != nil {
		return err
	}
	made, err := provision.New(store).Apply(ctx, provision.Options{OnlyRegistrations: true})
	if err != nil {
		return cli.RoomHint(err)
	}

	return c.Print.Result(c.Format, made, func() { c.PrintDifferences(made) })
}

// find returns the selected registrations.
func (c *registrationCommand) find(ctx context.Context) (*kvstore.Store, []kvstore.Registered, error) {
	store, err := c.Store(ctx)
	if err != nil {
		return nil, nil, err
	}
	all, err := cli.FindRegistrations(ctx, c.Log, store, c.filter)
	if errors.Is(err, model.ErrInvalidName) {
		err = cli.Usagef("%w", err)
	}

	return store, all, err
}

func (c *registrationCommand) query(ctx context.Context) error {
	_, all, err := c.find(ctx)
	switch {
	case err != nil:
		return err
	case c.prometheus != "":
		return c.writeTargets(ctx, all)
	}

	return c.Print.Result(c.Format, all, func() {
		rows := make([][]string, len(all))
		now := time.Now()
		for i, r := range all {
			rows[i] = []string{r.Cluster, r.Service, r.ProtocolName, r.Address, port(r), strconv.Itoa(r.Priority), r.Node, expiry(r, now)}
		}
		c.Print.Table([]string{"CLUSTER", "SERVICE", "PROTOCOL", "ADDRESS", "PORT", "PRIORITY", "NODE", "EXPIRES IN"}, rows, "no registrations")
	})
}

func (c *registrationCommand) rm(ctx context.Context) error {
	if c.filter == (kvstore.RegistrationFilter{}) && !c.yes {
		return cli.Usagef("no filter: give --cluster, --protocol, --service, --node or --address, or --yes for all")
	}
	store, all, err := c.find(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if err := kvstore.NewRegistrations(store).Withdraw(ctx, r.Registration); err != nil {
			return err
		}
		if !c.IsDocument() {
			c.Print.Printf("withdrawn %s\n", identity(r))
		}
	}

	return c.Print.Result(c.Format, all, func() {
		if len(all) == 0 {
			c.Print.Remark("no such registrations, nothing withdrawn")
		}
	})
}

// port returns the port, or - for a service without a port.
func port(r kvstore.Registered) string {
	if r.Port == 0 {
		return "-"
	}

	return strconv.Itoa(r.Port)
}

// expiry returns the time until a registration ends without a renewal.
func expiry(r kvstore.Registered, now time.Time) string {
	if r.Expires.IsZero() {
		return model.Never.String()
	}

	return r.Expires.Sub(now).Round(time.Second).String()
}

// identity returns what distinguishes a registration from others.
func identity(r kvstore.Registered) string {
	return print.Text(strings.Join([]string{r.Cluster, r.Service, r.ProtocolName, r.Address + " " + port(r), r.Node}, " "))
}
