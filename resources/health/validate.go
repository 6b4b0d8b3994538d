// Package health validates the health checks of resources: commands with the exit codes of Nagios
// plugins, and goss rules.
package health

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/command"
)

// DefaultTimeout is the default timeout of a check.
const DefaultTimeout = time.Minute

const (
	maxTries = 1000
	maxName  = 200
)

// nameOf returns the name property, the name of the program, or goss. It is empty without command and
// rules.
func nameOf(c model.HealthCheck) string {
	switch {
	case c.Name != "":
		return c.Name
	case c.GossRules != nil:
		return string(model.HealthGoss)
	}
	words, err := command.Split(c.Command)
	if err != nil {
		return ""
	}

	return path.Base(words[0])
}

// Complete fills in the names and formats of valid checks.
func Complete(checks []model.HealthCheck) {
	for i := range checks {
		c := &checks[i]
		c.Name = nameOf(*c)
		if c.Format = model.HealthNagios; c.Command == "" {
			c.Format = model.HealthGoss
		}
	}
}

// Validate reports every problem of a resource's checks, by property path:
// health_checks.0.tries. refreshes reports whether the resource's type acts on
// a refresh.
func Validate(checks []model.HealthCheck, typ string, refreshes bool) model.Problems {
	v := validator{typ: typ, refreshes: refreshes}
	for i, c := range checks {
		v.at = fmt.Sprintf("health_checks.%d", i)
		v.check(c)
		if first := slices.IndexFunc(checks[:i], func(other model.HealthCheck) bool { return nameOf(other) == nameOf(c) }); first >= 0 && nameOf(c) != "" {
			v.problem("name", "give each a different `name`", "two health checks are called %q", nameOf(c))
		}
	}

	return v.out
}

type validator struct {
	out       model.Problems
	at, typ   string
	refreshes bool
}

func (v *validator) problem(key, hint, format string, args ...any) {
	property := v.at
	if key != "" {
		property += "." + key
	}
	v.out.Property(property, hint, format, args...)
}

func (v *validator) check(c model.HealthCheck) {
	switch {
	case c.Command != "" && c.GossRules != nil:
		v.problem("goss_rules", "make two checks of it", "a health check has either a `command` or `goss_rules`")
	case c.Command != "":
		v.command(c)
	case len(c.GossRules) > 0:
		v.rules(c)
	case c.GossRules != nil:
		v.problem("goss_rules", "for example {file: {/etc/motd: {exists: true}}}", "`goss_rules` has no rules")
	default:
		v.problem("", "for example command: /usr/lib/nagios/plugins/check_load", "a health check needs a `command` or `goss_rules`")
	}
	v.limits(c)
	if len(c.Name) > maxName || strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		v.problem("name", "", "the name of a health check is one line of at most %d bytes", maxName)
	}
	switch {
	case c.CriticalOn != "" && c.CriticalOn != model.CriticalOnNonzero:
		v.problem("critical_on", "it can only be nonzero", "`critical_on` cannot be %q", c.CriticalOn)
	case c.CriticalOn != "" && c.GossRules != nil:
		v.problem("critical_on", "remove it", "`critical_on` is for a `command`, not for `goss_rules`")
	}
	switch {
	case c.OnCritical != "" && c.OnCritical != model.OnCriticalRefresh:
		v.problem("on_critical", "it can only be refresh", "`on_critical` cannot be %q", c.OnCritical)
	case c.OnCritical != "" && !v.refreshes:
		v.problem("on_critical", "put the check at the resource to refresh", "a refresh does nothing to a %s", v.typ)
	}
}

func (v *validator) limits(c model.HealthCheck) {
	if c.Tries != nil && (*c.Tries < 1 || *c.Tries > maxTries) {
		v.problem("tries", "", "`tries` must be from 1 to %d, not %d", maxTries, *c.Tries)
	}
	if c.Timeout != nil && *c.Timeout <= 0 {
		v.problem("timeout", "leave it out for the default of "+DefaultTimeout.String(), "`timeout` must be more than 0")
	}
}

func (v *validator) command(c model.HealthCheck) {
	if _, err := command.Split(c.Command); err != nil {
		v.problem("command", command.Hint(err), "`command` %s", err)
	}
	v.format(c.Format, model.HealthNagios, "a command")
}

func (v *validator) format(have, want model.HealthFormat, of string) {
	switch {
	case have == "" || have == want:
	case have != model.HealthNagios && have != model.HealthGoss:
		v.problem("format", "one of nagios, goss", "`format` cannot be %q", have)
	default:
		v.problem("format", "leave it out", "the format of %s is %s, not %s", of, want, have)
	}
}
