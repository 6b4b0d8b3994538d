package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/choria-io/fisk"
	"github.com/kballard/go-shellquote"
	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/ask"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/reports"
	"github.com/musterfleet/muster/model"
)

// Resume is the flag that shows the results of a request that was sent before.
type Resume struct{ ID string }

// AddResume adds the flag.
func (r *Resume) AddResume(cmd *fisk.CmdClause) {
	cmd.Flag("resume", "Send nothing; show the results of the request with this id, and wait for the results of the targets").PlaceHolder("ID").StringVar(&r.ID)
}

// Resumed is a request whose results are read from the stream of reports.
type Resumed struct {
	ID string
	// Protocol is that of the answers, see request.NewResults.
	Protocol string
	Within   time.Duration
	// OnAnswer gets each answer as it is read.
	OnAnswer func(model.EnsureResponse)
}

// Collect reads the results of the targets, and waits for those that are not there yet; without a
// target it returns those that there are. The error is also of usage.
func (r Resumed) Collect(ctx context.Context, env *cli.Env, aim *RequestTargets) (*ask.Ensured, error) {
	if r.ID == "" || !model.IsRequestID(r.ID) {
		return nil, cli.Usagef("the id of a request is one line of at most %d bytes", model.MaxRequestID)
	}
	var to RequestSelection
	isAimed := aim.HasTargets() || env.Given("on")
	on, list, err := aim.Compile(env)
	if err != nil && isAimed {
		return nil, err
	}
	store, err := Open(ctx, env, NeedReports)
	if err != nil {
		return nil, err
	}
	if err := store.KV.Ready(ctx); err != nil {
		return nil, err
	}
	var nodes []string
	if isAimed {
		if to, err = aim.Find(ctx, store, on, list, nil); err != nil {
			return nil, err
		}
		if nodes = ask.NodesOf(to.List, to.Known); len(nodes) == 0 {
			return nil, errors.Join(errors.New("no known node matches (see muster fleet nodes)"), to.Undecided)
		}
	}
	results := ask.NewResults(r.ID, r.Protocol, nodes)
	err = r.read(ctx, store.KV, env, len(nodes) > 0, results)
	if out := results.Ensured(to.Known); err != nil || len(out.NodeStates()) > 0 {
		return out, errors.Join(err, to.Undecided)
	}

	return nil, fmt.Errorf("no node has reported a result of request %s (see muster fleet reports --kind ensure --json)", print.Text(r.ID))
}

// read adds reports to results until they are complete, or the time is over. Without follow it
// reads what is stored.
func (r Resumed) read(ctx context.Context, store *kvstore.Store, env *cli.Env, follow bool, results *ask.Results) error {
	limit, done := context.WithTimeout(ctx, r.Within)
	defer done()
	line := env.Print.Progress()
	defer line.Clear()
	isWarned := false
	filter := reports.Filter{Kind: model.KindEnsure, Since: sentAfter(r.ID, time.Now()), Follow: follow}
	for report, err := range reports.New(store).Reports(limit, filter) {
		switch {
		case errors.Is(err, reports.ErrInvalidEvent):
			// A node may publish any number of them.
			if !isWarned {
				isWarned = true
				env.Log.Warn("invalid reports are left out", "first", err)
			}
			continue
		case err != nil && follow && limit.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		answer, isNew := results.Add(report)
		if !isNew {
			continue
		}
		if r.OnAnswer != nil {
			line.Clear()
			r.OnAnswer(answer)
		}
		if follow {
			p := results.Progress()
			line.Show("%d of %s answered", p.Finished, print.Count(p.Expected, "node"))
		}
		if results.Complete() {
			return nil
		}
	}

	return nil
}

// apart is how far the clocks of an operator and of the server may be apart.
const apart = time.Hour

// sentAfter returns a time before a request was sent: ids that muster makes have it. Others are
// known for a day.
func sentAfter(id string, now time.Time) time.Time {
	if at, err := ksuid.Parse(id); err == nil && at.Time().Before(now.Add(apart)) {
		return at.Time().Add(-apart)
	}

	return now.Add(-kvstore.MaxCommandTTL - apart)
}

// Command returns the command line of some words for the same targets.
func (a *RequestTargets) Command(words ...string) string {
	return shellquote.Join(slices.Concat([]string{"muster", "fleet"}, words, a.TargetFlags(), a.OnFlags())...)
}

// Announce tells people at a terminal, or before batches, how to see the results from another one.
func Announce(env *cli.Env, f print.Format, by *ask.BatchLimits, resume string) {
	if !f.IsDocument() && (by != nil || print.IsTerminal(env.Print.Err)) {
		env.Print.Remark("for results from another terminal: %s", resume)
	}
}
