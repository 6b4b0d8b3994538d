package main

import (
	"context"
	"fmt"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// terms are the flags that say more than the manifest does.
type terms struct {
	data, drift, when, expires string
	noop, intervalSet          bool
	interval                   time.Duration
	priority                   int
}

func (t *terms) add(cmd *fisk.CmdClause) {
	cmd.Flag("noop", "Nodes only say what they would change").UnNegatableBoolVar(&t.noop)
	cmd.Flag("data", "Give further data from a file, kv://bucket/key or http(s)://; it wins over the manifest's own").PlaceHolder("SOURCE").StringVar(&t.data)
	cmd.Flag("interval", "How often nodes look at it").PlaceHolder("DURATION").IsSetByUser(&t.intervalSet).DurationVar(&t.interval)
	cmd.Flag("when", "An expression that is evaluated on the node; false means not assigned").PlaceHolder("EXPRESSION").StringVar(&t.when)
	cmd.Flag("expires", "Unassigned after this time, or this long from now").PlaceHolder("TIME|DURATION").StringVar(&t.expires)
	cmd.Flag("drift", "What nodes do when they differ and nobody asked for a change").PlaceHolder("repair|report|ignore").EnumVar(&t.drift, "repair", "report", "ignore")
	wholeNumber(cmd.Flag("priority", "Lower runs first within its family").PlaceHolder("N"), &t.priority)
}

// termsOf makes terms of the flags.
func (a *app) termsOf(ctx context.Context, t terms) (fleet.Terms, error) {
	out := fleet.Terms{Noop: t.noop, Drift: model.Drift(t.drift), Interval: t.interval, When: t.when, Priority: t.priority}
	if t.intervalSet && t.interval < time.Second {
		return out, usagef("--interval must be at least 1s")
	}
	if t.expires != "" {
		at, err := moment(t.expires, time.Now(), 1)
		switch {
		case err != nil:
			return out, usagef("--expires: %w", err)
		case !at.After(time.Now()):
			return out, usagef("--expires %s is over already", t.expires)
		}
		out.Expires = at
	}
	if err := a.checkWhen(ctx, t.when); err != nil {
		return out, err
	}
	if t.data == "" {
		return out, nil
	}
	// The node's facts are not those of this machine.
	data, err := a.loader(nil).LoadData(ctx, t.data, manifest.Inputs{})
	if err != nil {
		return out, err
	}
	if holdsSecret(data) {
		return out, fmt.Errorf("--data %s holds a secret, which an assignment would show to everyone who reads the bucket: read it on the node, with kvGet or readFile", t.data)
	}
	out.Data = data

	return out, nil
}

// checkWhen checks a condition as far as that can be done without the node.
func (a *app) checkWhen(ctx context.Context, when string) error {
	if when == "" {
		return nil
	}
	v := resource.Value{Kind: resource.String, Text: when}
	v.Pos.File = "--when"
	if err := manifest.NewLoader(manifest.Options{Types: a.types}).CheckCondition(ctx, "when", v); err != nil {
		return &exitError{code: exitUsage, err: err, note: "nothing was pushed"}
	}

	return nil
}

func holdsSecret(v any) bool {
	switch v := v.(type) {
	case model.Secret:
		return true
	case []any:
		for _, item := range v {
			if holdsSecret(item) {
				return true
			}
		}
	case map[string]any:
		for _, item := range v {
			if holdsSecret(item) {
				return true
			}
		}
	}

	return false
}

// moment reads a time, or a duration that is added to now sign times.
func moment(text string, now time.Time, sign time.Duration) (time.Time, error) {
	if d, err := fisk.ParseDuration(text); err == nil {
		return now.Add(sign * d).UTC(), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at.UTC(), nil
		}
	}

	return time.Time{}, fmt.Errorf("%q is neither a duration such as 90m or 2d nor a time such as 2006-01-02T15:04:05Z", text)
}
