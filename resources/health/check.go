package health

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/kballard/go-shellquote"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/command"
)

// The defaults of a check.
const (
	defaultTries    = 1
	defaultTrySleep = time.Second
	defaultTimeout  = time.Minute
)

// maxOutput is how much of what a check says is kept.
const maxOutput = 4 << 10

// maxAtOnce is how many checks are made at the same time.
const maxAtOnce = 8

// Checker makes health checks. It is safe for concurrent use.
type Checker struct {
	host *host.Host
	goss []string
}

// New makes a checker. goss is the command that evaluates rules of goss, which
// it reads from standard input as JSON, and tells by the exit codes of a plugin
// what came of them: goss itself can neither be stopped nor be kept to the
// environment of a command, and its memory would stay with an agent.
func New(h *host.Host, goss ...string) *Checker { return &Checker{host: h, goss: goss} }

// CheckAll makes checks, which are complete, several at the same time, and gives what came of them
// in their order. env is added to the environment of their commands. One that was
// broken off because ctx ended has no status: nobody knows what it would have come to.
func (c *Checker) CheckAll(ctx context.Context, checks []model.HealthCheck, env []string) []model.HealthResult {
	out := make([]model.HealthResult, len(checks))
	slots := make(chan struct{}, maxAtOnce)
	var all sync.WaitGroup
	for i, check := range checks {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			out[i] = c.check(ctx, check, env)
		})
	}
	all.Wait()

	return out
}

// check makes one check until it is ok or its tries are used up.
func (c *Checker) check(ctx context.Context, check model.HealthCheck, env []string) model.HealthResult {
	began := time.Now()
	out := model.HealthResult{Name: check.Name, Format: check.Format}
	tries, sleep := defaultTries, defaultTrySleep
	if check.Tries != nil {
		tries = *check.Tries
	}
	if check.TrySleep != nil {
		sleep = check.TrySleep.Std()
	}
	for {
		out.Tries++
		out.Status, out.Output = c.try(ctx, check, env)
		if out.Status == model.HealthOK || out.Tries >= tries {
			break
		}
		if !pause(ctx, sleep) {
			out.Status, out.Output = "", ""
			break
		}
	}
	out.Duration = time.Since(began)

	return out
}

// pause waits; false means that ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return ctx.Err() == nil
	}
}

// errTimeout is a check that took longer than it may.
var errTimeout = errors.New("timed out")

// try makes a check once; without a status where ctx ended meanwhile.
func (c *Checker) try(ctx context.Context, check model.HealthCheck, env []string) (model.HealthStatus, string) {
	timeout := defaultTimeout
	if check.Timeout != nil {
		timeout = check.Timeout.Std()
	}
	command, err := c.command(check, timeout)
	if err != nil {
		return model.HealthUnknown, err.Error()
	}
	// Nothing of a check outlives it, not even what it starts in the background and
	// what goss gives up waiting for.
	command.Env, command.Tied, command.EndGroup = env, true, true
	limited, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%w after %s", errTimeout, timeout))
	defer cancel()
	result, err := c.host.Run(limited, command)
	said := outputOf(result)
	switch {
	case errors.Is(err, errTimeout) && ctx.Err() == nil:
		return model.HealthCritical, strings.TrimPrefix(fmt.Sprintf("%s\n%s after %s", said, errTimeout, timeout), "\n")
	case err != nil && ctx.Err() != nil:
		return "", ""
	case err != nil:
		return model.HealthUnknown, bounded(err.Error())
	default:
		return statusOf(result.ExitCode), said
	}
}

// command returns what is run for a check.
func (c *Checker) command(check model.HealthCheck, timeout time.Duration) (command.Command, error) {
	if check.Command == "" {
		if len(c.goss) == 0 {
			return command.Command{}, errors.New("goss rules cannot be evaluated here")
		}
		rules, err := json.Marshal(timed(check.GossRules, timeout))
		return command.Command{Argv: c.goss, Stdin: bytes.NewReader(rules)}, err
	}
	words, err := shellquote.Split(check.Command)

	return command.Command{Argv: words}, err
}

// statusOf reads an exit code as Nagios does.
func statusOf(code int) model.HealthStatus {
	switch code {
	case 0:
		return model.HealthOK
	case 1:
		return model.HealthWarning
	case 2:
		return model.HealthCritical
	default:
		return model.HealthUnknown
	}
}

// outputOf returns what a check said; what it said on standard error only where it
// said nothing else.
func outputOf(r command.Result) string {
	out := strings.TrimSpace(r.Stdout.String())
	if out == "" {
		out = strings.TrimSpace(r.Stderr.String())
	}

	return bounded(out)
}

// bounded cuts a text, and makes it one that documents can hold.
func bounded(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxOutput {
		return s
	}

	return strings.ToValidUTF8(s[:maxOutput], "") + " … (cut)"
}
