package systemd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/service"
)

const (
	// settleTime is how long muster reads an unsettled service again.
	settleTime = 5 * time.Second
	// jobTime is how long one resource waits for a job of systemd: a database takes minutes to stop.
	jobTime = 5 * time.Minute
	// settlePause is the first interval, which doubles up to maxSettlePause: most services stop within
	// milliseconds, and each read may start a process.
	settlePause    = 10 * time.Millisecond
	maxSettlePause = 200 * time.Millisecond
	// answerTimeout limits the answer of systemd.
	answerTimeout = time.Minute
)

type reader struct {
	// root holds the files of the machine.
	root string
	// sources are tried in order.
	sources []source
	mu      mutex
	own     *own
	booted  bootTime
}

type looked struct {
	state *service.State
	// unit is the id of the unit, empty if it is unknown.
	unit string
	// job reports that systemd has a job for the unit.
	job bool
	err error
}

// look reads services until they have settled, within the limits above.
func (r *reader) look(ctx context.Context, env resource.Env, names []string) []looked {
	out, todo := make([]looked, len(names)), make([]int, len(names))
	for i := range todo {
		todo[i] = i
	}
	pause := settlePause
	for began := time.Now(); ; pause = min(2*pause, maxSettlePause) {
		r.readStates(ctx, env, names, todo, out)
		waited := time.Since(began)
		var unsettled []int
		for _, i := range todo {
			l := &out[i]
			if !errors.Is(l.err, resource.ErrUnsettled) {
				continue
			}
			isQueued := errors.As(l.err, new(queued)) && env.RunID != ""
			limit := settleTime
			if isQueued && env.InTurn {
				limit = jobTime
			}
			switch {
			case waited < limit:
				unsettled = append(unsettled, i)
			case isQueued && !env.InTurn: // the next observation, alone, waits for it
				l.err = fmt.Errorf("%w after %s", l.err, limit)
			default:
				l.err = fmt.Errorf("%v after %s", l.err, limit)
			}
		}
		if todo = unsettled; len(todo) == 0 {
			return out
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			for _, i := range todo {
				out[i].err = fmt.Errorf("%s: %w", names[i], context.Cause(ctx))
			}
			return out
		}
	}
}

// queued means that systemd has a job for a service in a transitional state.
type queued struct{ error }

// Unwrap returns the error about the state.
func (q queued) Unwrap() error { return q.error }

func (r *reader) readStates(ctx context.Context, env resource.Env, names []string, todo []int, out []looked) {
	asked := make([]string, len(todo))
	for at, i := range todo {
		asked[at] = names[i]
	}
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, fmt.Errorf("systemd did not answer within %s", answerTimeout))
	defer cancel()
	units, err := r.show(ctx, env, unitNames(asked))
	if err != nil && len(todo) > 1 && ctx.Err() == nil {
		// systemd may reject one of the names.
		for _, i := range todo {
			r.readStates(ctx, env, names, []int{i}, out)
		}
		return
	}
	links := enablingLinks(r.root)
	for at, i := range todo {
		out[i] = looked{err: err}
		if err == nil {
			out[i].job = units[at].job
			out[i].state, out[i].unit, out[i].err = r.state(ctx, env, names[i], units[at], links)
		}
	}
}

func (r *reader) show(ctx context.Context, env resource.Env, names []string) ([]unit, error) {
	release, err := r.mu.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	for _, s := range r.sources {
		var units []unit
		if units, err = s.units(ctx, env, names); err == nil || ctx.Err() != nil {
			return units, err
		}
		env.Log.DebugContext(ctx, "cannot read units", "source", fmt.Sprint(s), "error", err.Error())
	}

	return nil, err
}

// state returns the state of a unit and its id. It runs is-enabled if the memory of systemd may be
// outdated.
func (r *reader) state(ctx context.Context, env resource.Env, name string, u unit, links links) (state *service.State, id string, err error) {
	if u.load == "bad-setting" || u.load == "error" {
		return nil, "", r.unreadable(ctx, env, name, u)
	}
	if u.id != service.UnitName(name) {
		if answer, err := r.isEnabled(ctx, env, name); err != nil || answer == notFound {
			return nil, "", cmp.Or(err, fmt.Errorf("%s: %w", name, service.ErrNotFound))
		}
	}
	answer, sure := u.isEnabled(links, hasScript(r.root, u.id))
	if !sure {
		if answer, err = r.isEnabled(ctx, env, u.id); err != nil {
			return nil, u.id, err
		}
	}
	if r.own.is(ctx, env, u.id) {
		u.active = "active"
		if r.own.isStoppedBy(env.RunID) {
			u.active = "inactive"
		}
	}
	state, err = stateOf(name, u.active, answer)
	if errors.Is(err, service.ErrNotFound) {
		return r.withoutFile(name, u), u.id, err
	}
	if u.job && errors.Is(err, resource.ErrUnsettled) {
		err = queued{err}
	}
	if err != nil {
		return nil, u.id, err
	}
	state.Since = r.booted.at().Add(u.activeSince)
	state.Outdated = u.needReload || u.load == notFound
	state.Obstacles.Mask = maskObstacle(r.root, name, u.id)
	if strings.HasPrefix(answer, "linked") {
		state.Obstacles.Enable = enableObstacle(r.root, u.id)
	}
	if answer == "enabled" {
		state.Links, state.Install = r.differingLinks(env, u.id, links)
	}
	if !u.canReload {
		state.Obstacles.Reload = errors.New("its unit has no ExecReload: set refresh to restart or reload-or-restart")
	}

	return state, u.id, nil
}

// withoutFile returns the state of a unit that still runs without its file, nil for any other missing
// unit.
func (r *reader) withoutFile(name string, u unit) *service.State {
	if u.active != "active" && u.active != activating {
		return nil
	}
	state, err := stateOf(name, u.active, "disabled")
	if err != nil {
		return nil
	}
	state.Metadata.UnitFile, state.Outdated = notFound, u.needReload
	state.Obstacles.Mask = maskObstacle(r.root, name, u.id)

	return state
}

func (r *reader) isEnabled(ctx context.Context, env resource.Env, name string) (string, error) {
	release, err := r.mu.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	result, err := run(ctx, env, nil, append([]string{systemctl, "is-enabled", "--system"}, afterOptions([]string{name})...)...)
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

// The answers with a special meaning.
const (
	activating     = "activating"
	enabledRuntime = "enabled-runtime"
	notFound       = "not-found"
	// perpetual is not an answer of is-enabled, which fails for such units.
	perpetual = "perpetual"
)

var (
	errIsActive  = errors.New("invalid systemctl is-active output")
	errIsEnabled = errors.New("invalid systemctl is-enabled output")
)

func stateOf(name, active, enabled string) (*service.State, error) {
	running, err := isRunning(active)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	starts, obstacles, err := startsAtBoot(enabled)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	ensure := service.EnsureStopped
	if running {
		ensure = service.EnsureRunning
	}

	return &service.State{
		CommonState: model.CommonState{Protocol: model.StateProtocol("service"), ResourceType: "service", Name: name, Ensure: ensure},
		Metadata:    service.Metadata{Name: name, Provider: providerName, Enabled: starts, Running: running, Active: active, UnitFile: enabled},
		Obstacles:   obstacles,
		Starting:    active == activating,
	}, nil
}

func isRunning(answer string) (bool, error) {
	switch answer {
	case "active":
		return true, nil
	case "inactive", "failed", activating:
		return false, nil
	case "reloading", "deactivating":
		return false, fmt.Errorf("it %w, still %s", resource.ErrUnsettled, answer)
	default:
		return false, fmt.Errorf("%w: %q", errIsActive, answer)
	}
}

// startsAtBoot interprets an answer of is-enabled, and returns the changes that are impossible.
func startsAtBoot(answer string) (starts bool, o service.Obstacles, err error) {
	switch answer {
	case "enabled", enabledRuntime:
		return true, o, nil
	case "static":
		o.Disable = errors.New("its unit is static: it has no [Install] section, what wants it starts it. Leave enable unset, or mask it")
	case "indirect":
		o.Disable = errors.New("its unit is indirect: its [Install] section only names other units, which have to be disabled instead")
	case "generated", "transient", perpetual:
		o.Disable = fmt.Errorf("its unit is %s: there is no unit file to be disabled. Leave enable unset, or change what makes the unit", answer)
	case "disabled", "linked", "linked-runtime":
		return false, o, nil
	case "masked", "masked-runtime":
		unmask := "systemctl unmask"
		if answer != "masked" {
			unmask += " --runtime"
		}
		masked := fmt.Errorf("its unit is masked: %s makes it usable again", unmask)
		return false, service.Obstacles{Start: masked, Enable: masked}, nil
	case notFound:
		return false, o, service.ErrNotFound
	default:
		return false, o, fmt.Errorf("%w: %q", errIsEnabled, answer)
	}

	return true, o, nil
}
