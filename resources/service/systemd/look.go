package systemd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/service"
)

const (
	// settleTime is how long an unsettled service is read again.
	settleTime = 5 * time.Second
	// jobTime is how long one is that has its turn, while systemd has a job for it: a database
	// takes minutes to stop.
	jobTime = 5 * time.Minute
	// settlePause is the first interval, which doubles up to maxSettlePause: most services
	// stop within milliseconds, and each reading may start a process.
	settlePause    = 10 * time.Millisecond
	maxSettlePause = 200 * time.Millisecond
	// answerTimeout bounds the answer of systemd.
	answerTimeout = time.Minute
)

// Status is StatusAll for one.
func (p *Provider) Status(ctx context.Context, env resource.Env, name string) (*service.State, error) {
	states, errs := p.StatusAll(ctx, env, []string{name})

	return states[0], errs[0]
}

// StatusAll reads all services with one systemctl show, from which the answers
// of is-active and is-enabled follow. Services that reload or stop are read
// again for up to 5 s, one alone for minutes while systemd has a job for it: somebody restarts it.
func (p *Provider) StatusAll(ctx context.Context, env resource.Env, names []string) ([]*service.State, []error) {
	return p.look(ctx, env, names, p.names.note)
}

// outcomes is StatusAll after a change, of units that were observed by whatever names before.
func (p *Provider) outcomes(ctx context.Context, env resource.Env, units []string) ([]*service.State, []error) {
	return p.look(ctx, env, units, func(string, string, string) error { return nil })
}

// look is StatusAll with what notes the unit of each name, in a run.
func (p *Provider) look(ctx context.Context, env resource.Env, names []string, note func(run, name, unit string) error) ([]*service.State, []error) {
	states, errs := make([]*service.State, len(names)), make([]error, len(names))
	todo := make([]int, len(names))
	for i := range todo {
		todo[i] = i
	}
	pause := settlePause
	for began := time.Now(); ; pause = min(2*pause, maxSettlePause) {
		p.readStates(ctx, env, names, todo, note, states, errs)
		waited := time.Since(began)
		var unsettled []int
		for _, i := range todo {
			if !errors.Is(errs[i], resource.ErrUnsettled) {
				continue
			}
			isQueued := errors.As(errs[i], new(queued)) && env.RunID != ""
			limit := settleTime
			if isQueued && env.InTurn {
				limit = jobTime
			}
			switch {
			case waited < limit:
				unsettled = append(unsettled, i)
			case isQueued && !env.InTurn: // it is waited for when it has its turn
				errs[i] = fmt.Errorf("%w after %s", errs[i], limit)
			default:
				errs[i] = fmt.Errorf("%v after %s", errs[i], limit)
			}
		}
		if todo = unsettled; len(todo) == 0 {
			return states, errs
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			for _, i := range todo {
				errs[i] = fmt.Errorf("%s: %w", names[i], context.Cause(ctx))
			}
			return states, errs
		}
	}
}

// queued is that systemd has a job for a service that is in between.
type queued struct{ error }

// Unwrap returns what the state is.
func (q queued) Unwrap() error { return q.error }

// readStates fills in the states of the services numbered by todo.
func (p *Provider) readStates(ctx context.Context, env resource.Env, names []string, todo []int, note func(run, name, unit string) error, states []*service.State, errs []error) {
	asked := make([]string, len(todo))
	for at, i := range todo {
		asked[at] = names[i]
	}
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, fmt.Errorf("systemd did not answer within %s", answerTimeout))
	defer cancel()
	units, err := p.show(ctx, env, unitNames(asked))
	if err != nil && len(todo) > 1 && ctx.Err() == nil {
		// One of the names may be invalid for systemd.
		for _, i := range todo {
			p.readStates(ctx, env, names, []int{i}, note, states, errs)
		}
		return
	}
	links := enablingLinks(p.root)
	for at, i := range todo {
		states[i], errs[i] = nil, err
		if err == nil {
			states[i], errs[i] = p.state(ctx, env, names[i], units[at], links, note)
		}
	}
}

// show returns what systemd has in memory of units, in order.
func (p *Provider) show(ctx context.Context, env resource.Env, names []string) ([]unit, error) {
	release, err := p.turn.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	for _, s := range p.sources {
		var units []unit
		if units, err = s.units(ctx, env, names); err == nil || ctx.Err() != nil {
			return units, err
		}
		env.Log.DebugContext(ctx, "cannot read units", "source", fmt.Sprint(s), "error", err.Error())
	}

	return nil, err
}

// state returns the state of a unit, and runs is-enabled where systemd's memory
// may be outdated. A service may be named by any name of its unit, but only by one
// of them in a run.
func (p *Provider) state(ctx context.Context, env resource.Env, name string, u unit, links links, note func(run, name, unit string) error) (*service.State, error) {
	asked := service.UnitName(name)
	if u.load == "bad-setting" || u.load == "error" {
		return nil, unreadable(ctx, env, name, u)
	}
	if u.id != asked {
		if answer, err := p.isEnabled(ctx, env, name); err != nil || answer == notFound {
			return nil, cmp.Or(err, fmt.Errorf("%s: %w", name, service.ErrNotFound))
		}
	}
	if err := note(env.RunID, asked, u.id); err != nil {
		return nil, err
	}
	answer, sure := u.isEnabled(links, hasScript(p.root, u.id))
	if !sure {
		var err error
		if answer, err = p.isEnabled(ctx, env, u.id); err != nil {
			return nil, err
		}
	}
	if p.isOwn(ctx, env, u.id) {
		u.active = p.own.active(env.RunID)
	}
	state, err := stateOf(name, u.active, answer)
	if u.job && errors.Is(err, resource.ErrUnsettled) {
		err = queued{err}
	}
	if err != nil {
		return nil, err
	}
	state.Since = p.booted.at().Add(u.activeSince)
	state.Outdated = u.needReload || u.load == notFound
	if !u.canReload {
		state.Obstacles.Reload = errors.New("its unit has no ExecReload: set refresh to restart or reload-or-restart")
	}

	return state, nil
}

// isEnabled returns what the files say now.
func (p *Provider) isEnabled(ctx context.Context, env resource.Env, name string) (string, error) {
	release, err := p.turn.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	result, err := run(ctx, env, nil, systemctl, "is-enabled", "--system", name)
	if err != nil {
		return "", err
	}
	answer := result.Stdout.LastLines(1)
	said := strings.ToValidUTF8(result.Stderr.LastLines(logLines), "\uFFFD")
	switch {
	case answer != "":
		return answer, nil
	case strings.Contains(said, "No such file or directory"):
		return notFound, nil
	default:
		return "", fmt.Errorf("%w: %q, %s", errIsEnabled, answer, said)
	}
}

// AreStarted looks which services are active, or have a job of systemd that makes them so: muster
// has none of its own for what it is about to start.
func (p *Provider) AreStarted(ctx context.Context, env resource.Env, names []string) []bool {
	out := make([]bool, len(names))
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	units, err := p.show(ctx, env, unitNames(names))
	if err != nil {
		env.Log.DebugContext(ctx, "cannot tell who starts services", "error", err.Error())
	}
	for i, u := range units {
		out[i] = u.active == "active" || u.job && (u.active == "inactive" || u.active == activating)
	}

	return out
}
