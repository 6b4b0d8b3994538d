package controlcmd

import (
	"context"
	"errors"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/fleetcli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/signing"
	"github.com/musterfleet/muster/kvstore/control"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// pauseCommand is muster fleet pause.
type pauseCommand struct {
	aim
	print.Format
	fleetcli.Signing
	nodes         []string
	until, reason string
}

// written is what was written under one key.
type written struct {
	Key      string `json:"key"`
	Revision uint64 `json:"revision"`
}

// AddPause adds muster fleet pause.
func AddPause(env *cli.Env, parent *fisk.CmdClause) {
	c := &pauseCommand{}
	cmd := parent.Command("pause", "Have nodes observe and change nothing for a while")
	cmd.HelpLong("A paused node runs nothing that was assigned since, repairs no drift and refuses requests; drift is still reported, and a run in progress ends. What it missed it does when the pause is over: at --until, or with muster fleet resume.\n\n" +
		"  muster fleet pause web01 --until 2h --reason 'disk is replaced'\n  muster fleet pause --group web\n  muster fleet pause --on 'labels.rack == \"a3\"'")
	cmd.Arg("node", "Nodes to pause").HintAction(env.CompleteNodes).StringsVar(&c.nodes)
	c.add(env, cmd, true)
	cmd.Flag("until", "When it ends by itself: a duration from now, such as 2h, or a time").PlaceHolder("TIME").StringVar(&c.until)
	cmd.Flag("reason", "Why, for others").PlaceHolder("TEXT").StringVar(&c.reason)
	c.AddSigning(cmd)
	c.AddFormat(cmd)
	cmd.Action(env.Action(cli.UnlessNoop(c.run)))
}

// pause returns what is written.
func (c *pauseCommand) pause(now time.Time) (model.Pause, error) {
	p := model.Pause{Protocol: model.ProtocolPause, By: fleetcli.Operator(), Reason: c.reason, At: now.UTC().Truncate(time.Second)}
	if c.Given("until") {
		until, err := fleetcli.ParseTime(c.until, now, 1)
		if err != nil {
			return p, cli.Usagef("--until %w", err)
		}
		if !until.After(now) {
			return p, cli.Usagef("--until %s: is over", c.until)
		}
		p.Until = until.Truncate(time.Second)
	}
	if err := p.Check(); err != nil {
		return p, cli.Usagef("%w", err)
	}

	return p, nil
}

func (c *pauseCommand) run(ctx context.Context) error {
	on, list, err := c.compile(c.nodes)
	if err != nil {
		return err
	}
	p, err := c.pause(time.Now())
	if err != nil {
		return err
	}
	signer, err := c.Open(c.Env)
	if err != nil {
		return err
	}
	store, err := fleetcli.Open(ctx, c.Env)
	if err != nil {
		return err
	}
	found, err := c.find(ctx, store, on, list)
	if err != nil {
		return err
	}
	value, err := model.EncodeJSON(p)
	if err != nil {
		return err
	}
	bucket := control.New(store.KV)
	var done []written
	var failed []error
	for _, t := range found.targets {
		key := t.Key(model.ControlPause)
		revision, err := c.put(ctx, bucket, signer, t.String(), value)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		done = append(done, written{key, revision})
	}
	shown := model.Paused{Until: p.Until, By: p.By, Reason: p.Reason}
	err = c.Print.Result(c.Format, done, func() {
		for _, w := range done {
			c.Print.Printf("%s %s, revision %d\n", w.Key, print.Text(shown.String()), w.Revision)
		}
	})

	return errors.Join(append(failed, err, found.undecided)...)
}

// put pauses a family.
func (c *pauseCommand) put(ctx context.Context, bucket control.Bucket, signer *signing.Signing, family string, value []byte) (uint64, error) {
	key := model.Key(family, model.ControlPause)
	current, err := bucket.Get(ctx, key)
	if err != nil && !errors.Is(err, model.ErrNotFound) {
		return 0, err
	}
	switch {
	case signer != nil:
		if value, err = signer.Pause(ctx, family, value, current.Value); err != nil {
			return 0, err
		}
	case signed.IsEnvelope(current.Value):
		c.Log.Warn("unsigned, unlike what it replaces: nodes that demand signatures reject it (give --sign-key FILE)", "key", key)
	}

	return bucket.Put(ctx, key, value)
}
