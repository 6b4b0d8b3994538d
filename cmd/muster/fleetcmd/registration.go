package fleetcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/resources/host/files"
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
		return withRemedy(err)
	}

	return c.Print.Result(c.Format, made, func() { printDifferences(c.Print, made) })
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
		rows := print.Rows(all, func(r kvstore.Registered) []string {
			return []string{r.Cluster, r.Service, r.ProtocolName, r.Address, port(r), strconv.Itoa(r.Priority), r.Node, expiry(r, time.Now())}
		})
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

func (c *registrationCommand) watch(ctx context.Context) error {
	store, err := c.Store(ctx)
	if err != nil {
		return err
	}
	current := map[string]kvstore.Registered{}
	complete, written := false, false
	for r, err := range kvstore.NewRegistrations(store).WatchRegistrations(ctx, c.filter) {
		switch {
		case err != nil && errors.Is(context.Cause(ctx), cli.ErrInterrupted):
			return nil
		case errors.Is(err, model.ErrInvalidName):
			return cli.Usagef("%w", err)
		case errors.Is(err, registration.ErrInvalid):
			c.Log.Warn("invalid registration", "error", err)
			continue
		case errors.Is(err, kvstore.ErrRegistrationsNotCurrent):
			c.Log.Warn(err.Error())
			continue
		case err != nil:
			return err
		}
		changed := update(current, r)
		complete = complete || r.Node == ""
		switch {
		case c.prometheus == "" && r.Node != "" && changed:
			err = c.Print.Item(c.Format, r, line(r))
		case c.prometheus == "" || !complete || !changed && r.Node != "":
		case written:
			c.keepTargets(ctx, slices.Collect(maps.Values(current)))
		default:
			written, err = true, c.writeTargets(ctx, slices.Collect(maps.Values(current)))
		}
		if errors.Is(err, syscall.EPIPE) {
			return nil // the reader closed the pipe
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// update records a registration, and reports whether it differs from the recorded one.
func update(current map[string]kvstore.Registered, r kvstore.Registered) bool {
	key := identity(r)
	old, known := current[key]
	if r.Gone {
		delete(current, key)
		return known
	}
	if r.Node == "" {
		return false
	}
	current[key] = r

	return !known || old.Priority != r.Priority || !maps.Equal(old.Annotations, r.Annotations)
}

func line(r kvstore.Registered) string {
	sign := "+"
	if r.Gone {
		sign = "-"
	}

	return fmt.Sprintf("%s %s priority %d", sign, identity(r), r.Priority)
}

// retryAfter is the wait before a failed write is retried.
const retryAfter = time.Second

// keepTargets writes the file, and retries until it succeeds or ctx ends. New changes wait in the
// subscription.
func (c *registrationCommand) keepTargets(ctx context.Context, all []kvstore.Registered) {
	for try := 0; ; try++ {
		err := c.writeTargets(ctx, all)
		switch {
		case err == nil && try > 0:
			c.Log.Info("Prometheus file written again", "file", c.prometheus)
			return
		case err == nil:
			return
		case try == 0:
			c.Log.Warn("cannot write the Prometheus file, will retry", "error", err)
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return
		}
	}
}

// writeTargets writes registrations for Prometheus file discovery. It does not touch an unchanged file.
func (c *registrationCommand) writeTargets(ctx context.Context, all []kvstore.Registered) error {
	plain := make([]registration.Registration, len(all))
	for i, r := range all {
		plain[i] = r.Registration
	}
	text, err := json.MarshalIndent(registration.Targets(plain), "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	file, err := filepath.Abs(c.prometheus)
	if err != nil {
		return err
	}
	switch old, err := files.Read(file, int64(len(text))); {
	case err == nil && bytes.Equal(old, text):
		return nil
	case errors.Is(err, files.ErrNotRegular):
		return fmt.Errorf("--prometheus: %w", err)
	}
	if err := c.Host().Write(ctx, file, bytes.NewReader(text), files.OwnAttrs(0o644)); err != nil {
		return fmt.Errorf("--prometheus: %w", err)
	}
	for _, r := range all {
		for label, keys := range r.AnnotationsByLabel() {
			if len(keys) > 1 {
				c.Log.Warn("annotations with the same Prometheus label, only the first is written", "label", label, "annotations", strings.Join(keys, ", "), "address", r.Address, "port", r.Port)
			}
		}
	}

	return nil
}
