package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/registrations"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
)

// readRegistrations gives what the function registrations asks for. What cannot
// be read is left out, and told.
func (a *app) readRegistrations(open func(context.Context) (*natsStore, error)) manifest.ReadRegistrations {
	return func(ctx context.Context, cluster, protocol, service, address string) ([]model.Registration, error) {
		store, err := open(ctx)
		if err != nil {
			return nil, err
		}
		all, err := store.Registrations(ctx, registrations.Filter{Cluster: cluster, Protocol: protocol, Service: service, Address: address})
		if errors.Is(err, registrations.ErrInvalidRegistration) {
			a.log.Warn("registrations that cannot be read are left out", "error", err)
			err = nil
		}
		out := make([]model.Registration, len(all))
		for i, r := range all {
			out[i] = r.Registration
		}
		return out, err
	}
}

// registrationCommand are the words by which registrations are chosen.
type registrationCommand struct {
	format
	filter     registrations.Filter
	prometheus string
	yes        bool
}

func (c *registrationCommand) addFilter(cmd *fisk.CmdClause) {
	cmd.Flag("cluster", "Only of this cluster").PlaceHolder("NAME").StringVar(&c.filter.Cluster)
	cmd.Flag("protocol", "Only those spoken to so").PlaceHolder("NAME").StringVar(&c.filter.Protocol)
	cmd.Flag("service", "Only this service").PlaceHolder("NAME").StringVar(&c.filter.Service)
	cmd.Flag("node", "Only what this node tells of").PlaceHolder("NODE").StringVar(&c.filter.Node)
	cmd.Flag("address", "Only at this address").PlaceHolder("ADDRESS").StringVar(&c.filter.Address)
}

func (a *app) addRegistration(ctx context.Context, cli *fisk.Application) {
	parent := cli.Command("registration", "Find the services that nodes tell of")
	parent.HelpLong("Resources register what they offer by register_when_stable.\n\n" +
		"  muster registration query --service shop\n  muster registration watch\n  muster registration watch --prometheus /etc/prometheus/shop.json --protocol http")
	start := &registrationCommand{}
	cmd := parent.Command("init", "Make the stream of registrations, or bring it up to date; muster fleet init does it too")
	start.add(cmd)
	cmd.Action(a.operation(unlessNoop(func() error { return a.registrationInit(ctx, start) })))

	query := &registrationCommand{}
	cmd = parent.Command("query", "Show the registrations that hold now")
	query.addFilter(cmd)
	cmd.Flag("prometheus", "Write them into a file for the file discovery of Prometheus instead").PlaceHolder("FILE").StringVar(&query.prometheus)
	query.add(cmd)
	cmd.Action(a.operation(func() error { return a.registrationQuery(ctx, query) }))

	watch := &registrationCommand{}
	cmd = parent.Command("watch", "Show registrations as they come and go")
	watch.addFilter(cmd)
	cmd.Flag("prometheus", "Keep a file for the file discovery of Prometheus up to date instead").PlaceHolder("FILE").StringVar(&watch.prometheus)
	watch.add(cmd)
	cmd.Action(a.operation(func() error { return a.registrationWatch(ctx, watch) }))

	rm := &registrationCommand{}
	cmd = parent.Command("rm", "Withdraw registrations; a node that still stands by one tells of it again")
	rm.addFilter(cmd)
	cmd.Flag("yes", "Withdraw all of them where nothing is chosen").Short('y').UnNegatableBoolVar(&rm.yes)
	rm.add(cmd)
	cmd.Action(a.operation(unlessNoop(func() error { return a.registrationRm(ctx, rm) })))
}

func (a *app) registrationInit(ctx context.Context, c *registrationCommand) error {
	store, err := a.store(ctx)
	if err != nil {
		return err
	}
	made, err := store.Apply(ctx, provision.Options{OnlyRegistrations: true})
	switch {
	case err != nil:
		return roomHint(err)
	case c.isDocument():
		if made == nil {
			made = []provision.Difference{}
		}
		return a.printDocument(made, c.yaml)
	}
	a.printDifferences(made)

	return nil
}

// found reads the registrations that are chosen. Those that cannot be read are told.
func (a *app) found(ctx context.Context, c *registrationCommand) (*natsStore, []registrations.Registered, error) {
	store, err := a.store(ctx)
	if err != nil {
		return nil, nil, err
	}
	all, err := store.Registrations(ctx, c.filter)
	switch {
	case errors.Is(err, model.ErrInvalidName):
		return nil, nil, usagef("%w", err)
	case errors.Is(err, registrations.ErrInvalidRegistration):
		a.log.Warn("registrations that cannot be read are left out", "error", err)
		err = nil
	}
	if all == nil {
		all = []registrations.Registered{}
	}

	return store, all, err
}

func (a *app) registrationQuery(ctx context.Context, c *registrationCommand) error {
	_, all, err := a.found(ctx, c)
	switch {
	case err != nil:
		return err
	case c.prometheus != "":
		return a.writeTargets(ctx, c.prometheus, all)
	case c.isDocument():
		return a.printDocument(all, c.yaml)
	case len(all) == 0:
		fmt.Fprintln(a.stderr, "nothing is registered")
		return nil
	}
	rows := make([][]string, len(all))
	now := time.Now()
	for i, r := range all {
		rows[i] = []string{r.Cluster, r.Service, r.ProtocolName, r.Address, strconv.Itoa(r.Port), strconv.Itoa(r.Priority), r.Node, r.Expires.Sub(now).Round(time.Second).String()}
	}
	a.table([]string{"CLUSTER", "SERVICE", "PROTOCOL", "ADDRESS", "PORT", "PRIORITY", "NODE", "FOR"}, rows)

	return nil
}

func (a *app) registrationRm(ctx context.Context, c *registrationCommand) error {
	if c.filter == (registrations.Filter{}) && !c.yes {
		return usagef("say which: --cluster, --protocol, --service, --node, --address, or --yes for all")
	}
	store, all, err := a.found(ctx, c)
	if err != nil {
		return err
	}
	for _, r := range all {
		if err := store.Withdraw(ctx, r.Registration); err != nil {
			return err
		}
		if !c.isDocument() {
			fmt.Fprintf(a.stdout, "withdrawn %s\n", registrationWords(r))
		}
	}
	switch {
	case c.isDocument():
		return a.printDocument(all, c.yaml)
	case len(all) == 0:
		fmt.Fprintln(a.stderr, "nothing of that is registered, so nothing was withdrawn")
	}

	return nil
}

func registrationWords(r registrations.Registered) string {
	return printable(strings.Join([]string{r.Cluster, r.Service, r.ProtocolName, r.Address + " " + strconv.Itoa(r.Port), r.Node}, " "))
}
