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

// maxOutput limits the stored output of a check.
const maxOutput = 4 << 10

// maxAtOnce is the maximum number of parallel checks.
const maxAtOnce = 8

// Checker runs health checks. It is safe for concurrent use.
type Checker struct {
	host *host.Host
	goss []string
}

// New returns a checker. goss is the command that evaluates goss rules: it reads them from standard input as
// JSON and exits like a plugin. In this process, goss could not be stopped, would see the environment, and
// would use memory permanently.
func New(h *host.Host, goss ...string) *Checker { return &Checker{host: h, goss: goss} }

// CheckAll runs completed checks in parallel and returns their results in order. env is added to the
// environment of their commands. A check that ctx cancelled has no status.
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

// check runs a check until it is ok or all tries failed.
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

// pause reports whether ctx is still alive after d.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return ctx.Err() == nil
	}
}

// errTimeout means that a check exceeded its timeout.
var errTimeout = errors.New("timed out")

// try runs a check once. It returns no status if ctx ended.
func (c *Checker) try(ctx context.Context, check model.HealthCheck, env []string) (model.HealthStatus, string) {
	timeout := defaultTimeout
	if check.Timeout != nil {
		timeout = check.Timeout.Std()
	}
	command, err := c.command(check, timeout)
	if err != nil {
		return model.HealthUnknown, err.Error()
	}
	// No process of a check outlives it, including background processes and processes that goss no
	// longer waits for.
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
		return model.HealthUnknown, truncated(err.Error())
	default:
		return statusOf(result.ExitCode, check.CriticalOn), said
	}
}

func (c *Checker) command(check model.HealthCheck, timeout time.Duration) (command.Command, error) {
	if check.Command == "" {
		if len(c.goss) == 0 {
			return command.Command{}, errors.New("goss rules cannot be evaluated here")
		}
		rules, err := json.Marshal(timed(check.GossRules, timeout))
		return command.Command{Argv: c.goss, Stdin: bytes.NewReader(rules)}, err
	}
	words, err := command.Split(check.Command)

	return command.Command{Argv: words}, err
}

// statusOf returns the status for an exit code: by critical_on, or else as Nagios does.
func statusOf(code int, criticalOn model.CriticalOn) model.HealthStatus {
	switch {
	case code == 0:
		return model.HealthOK
	case criticalOn == model.CriticalOnNonzero:
		return model.HealthCritical
	case code == 1:
		return model.HealthWarning
	case code == 2:
		return model.HealthCritical
	default:
		return model.HealthUnknown
	}
}

// outputOf returns stdout, or stderr when stdout is empty.
func outputOf(r command.Result) string {
	out := strings.TrimSpace(r.Stdout.String())
	if out == "" {
		out = strings.TrimSpace(r.Stderr.String())
	}

	return truncated(out)
}

// truncated limits a text and makes it valid UTF-8.
func truncated(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxOutput {
		return s
	}

	return strings.ToValidUTF8(s[:maxOutput], "") + " … (cut)"
}
