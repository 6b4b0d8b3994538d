package fleetcmd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/manifest"
)

// terms holds the flags that set the terms of an assignment.
type terms struct {
	model.Assignment
	data, expires string
}

func (t *terms) addTerms(cmd *fisk.CmdClause) {
	cmd.Flag("noop", "Nodes only report the changes that they would make").UnNegatableBoolVar(&t.Noop)
	cmd.Flag("data", "Additional data from a file, kv://bucket/key or http(s)://; overrides the manifest's own").PlaceHolder("SOURCE").StringVar(&t.data)
	cmd.Flag("interval", "Interval between runs on a node").PlaceHolder("DURATION").DurationVar((*time.Duration)(&t.Interval))
	cmd.Flag("when", "Condition, evaluated on the node; false means not assigned").PlaceHolder("EXPRESSION").StringVar(&t.When)
	cmd.Flag("expires", "Expiry: a time, or a duration from now").PlaceHolder("TIME|DURATION").StringVar(&t.expires)
	cli.Enum(cmd.Flag("drift", "Action of nodes on drift").PlaceHolder("repair|report|ignore"), (*string)(&t.Drift), "repair", "report", "ignore")
	cli.Int(cmd.Flag("priority", "Order within a target; lower runs first").PlaceHolder("N"), &t.Priority)
}

// parse returns the terms that the flags set.
func (t *terms) parse(ctx context.Context, env *cli.Env) (model.Assignment, error) {
	out := t.Assignment
	if env.Given("interval") && out.Interval.Std() < time.Second {
		return out, cli.Usagef("--interval must be at least 1s")
	}
	if t.expires != "" {
		at, err := ParseTime(t.expires, time.Now(), 1)
		switch {
		case err != nil:
			return out, cli.Usagef("--expires %w", err)
		case !at.After(time.Now()):
			return out, cli.Usagef("--expires %s is in the past", t.expires)
		}
		out.Expires = at
	}
	if err := checkCondition(ctx, env, out.When); err != nil {
		return out, err
	}
	if t.data == "" {
		return out, nil
	}
	// Facts of this machine do not apply to nodes.
	author, err := paths.AuthorIn(".")
	if err != nil {
		return out, err
	}
	data, err := env.Loader(nil).LoadData(ctx, t.data, manifest.Inputs{Author: author})
	if err != nil {
		return out, err
	}
	if data.Untrusted != nil {
		return out, fmt.Errorf("--data %s includes text from readFile, which templates on nodes could evaluate: %w", t.data, data.Untrusted)
	}
	if holdsSecret(data.Values) {
		return out, fmt.Errorf("--data %s holds a secret, which an assignment would show to everyone who reads the bucket: read it on the node, with kvGet or readFile", t.data)
	}
	out.Data = data.Values

	return out, nil
}

// checkCondition checks the syntax and types of a condition without a node.
func checkCondition(ctx context.Context, env *cli.Env, when string) error {
	if when == "" {
		return nil
	}
	v := document.Value{Kind: document.String, Text: when}
	v.Pos.File = "--when"
	if err := manifest.NewLoader(manifest.Options{Types: env.Types}).CheckCondition(ctx, "when", v); err != nil {
		return &cli.ExitError{Code: cli.ExitUsage, Err: err, Note: "nothing was pushed"}
	}

	return nil
}

func holdsSecret(v any) bool {
	switch v := v.(type) {
	case model.Secret:
		return true
	case []any:
		return slices.ContainsFunc(v, holdsSecret)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), holdsSecret)
	default:
		return false
	}
}
