package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/health"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/command"
)

// Checker runs health checks. It is safe for concurrent use.
type Checker interface {
	// CheckAll runs completed checks and returns their results in order. env is added to the
	// environment of their commands. A check that ctx cancelled has no status.
	CheckAll(ctx context.Context, checks []model.HealthCheck, env []string) []model.HealthResult
}

const (
	// defaultTrySleep is the default pause between two tries.
	defaultTrySleep = time.Second
	// maxCheckOutput limits the stored output of a check.
	maxCheckOutput = 4 << 10
	// maxChecks is the maximum number of parallel checks.
	maxChecks = 8
)

type checker struct {
	host *host.Host
	goss []string
}

// NewChecker returns a checker. goss is the command that evaluates goss rules: it reads them from standard input as
// JSON and exits like a plugin. In this process, goss could not be stopped, would see the environment, and
// would use memory permanently.
func NewChecker(h *host.Host, goss ...string) Checker { return &checker{host: h, goss: goss} }

// CheckAll implements Checker. It runs several checks in parallel.
func (c *checker) CheckAll(ctx context.Context, checks []model.HealthCheck, env []string) []model.HealthResult {
	out := make([]model.HealthResult, len(checks))
	parallel(len(checks), maxChecks, func(i int) { out[i] = c.check(ctx, checks[i], env) })

	return out
}

// check runs a check until it is ok or all tries failed.
func (c *checker) check(ctx context.Context, check model.HealthCheck, env []string) model.HealthResult {
	began := time.Now()
	out := model.HealthResult{Name: check.Name, Format: check.Format}
	tries, sleep := 1, defaultTrySleep
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
		if !waitForRetry(ctx, sleep) {
			out.Status, out.Output = "", ""
			break
		}
	}
	out.Duration = time.Since(began)

	return out
}

// errTimeout means that a check exceeded its timeout.
var errTimeout = errors.New("timed out")

// try runs a check once. It returns no status if ctx ended.
func (c *checker) try(ctx context.Context, check model.HealthCheck, env []string) (model.HealthStatus, string) {
	timeout := health.DefaultTimeout
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

func (c *checker) command(check model.HealthCheck, timeout time.Duration) (command.Command, error) {
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

func truncated(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxCheckOutput {
		return s
	}

	return strings.ToValidUTF8(s[:maxCheckOutput], "") + " … (cut)"
}

// timed sets the timeout of the check in rules that goss would stop earlier. Addresses and names keep their
// timeout, because for them no answer in time is a result.
func timed(rules model.GossRules, timeout time.Duration) model.GossRules {
	out := maps.Clone(rules)
	for _, kind := range []string{"command", "http", "mount"} {
		if len(rules[kind]) == 0 {
			continue
		}
		out[kind] = maps.Clone(rules[kind])
		for name, rule := range out[kind] {
			if rule["timeout"] == nil {
				rule = maps.Clone(rule)
				rule["timeout"] = timeout.Milliseconds()
				out[kind][name] = rule
			}
		}
	}

	return out
}
