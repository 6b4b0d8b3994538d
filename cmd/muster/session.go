package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/session"
)

// errNoSession is a session command outside of a session.
var errNoSession = errors.New("there is no session: start one with eval $(muster session new)")

func (a *app) addSession(ctx context.Context, cli *fisk.Application) {
	session := cli.Command("session", "Let ensure commands reach each other's resources")
	session.HelpLong("  eval $(muster session new)\n  muster ensure file /etc/motd …\n  muster ensure exec reload --refresh-only --subscribe file#/etc/motd\n  muster session report --remove")
	session.Command("new", "Start a session; prints what to eval in a shell").Action(a.action(func() error { return a.sessionNew(ctx) }))
	var asJSON, asYAML, remove bool
	report := session.Command("report", "Summarise the session")
	report.Flag("json", "Print as JSON").UnNegatableBoolVar(&asJSON)
	report.Flag("yaml", "Print as YAML").UnNegatableBoolVar(&asYAML)
	report.Flag("remove", "Delete the session afterwards").UnNegatableBoolVar(&remove)
	report.Action(a.action(func() error { return a.sessionReport(asJSON, asYAML, remove) }))
}

func (a *app) sessionNew(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "muster-session-")
	if err != nil {
		return err
	}
	if _, err := session.New(ctx, a.host(), dir); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "export %s=%s\n", envSession, dir)

	return err
}

func (a *app) sessionReport(asJSON, asYAML, remove bool) error {
	dir := os.Getenv(envSession)
	if dir == "" {
		return errNoSession
	}
	session, err := session.Open(a.host(), dir)
	if err != nil {
		return err
	}
	s, err := session.Summary()
	if err != nil {
		return err
	}
	if asJSON || asYAML {
		err = a.printDocument(s, asYAML)
	} else {
		health := ""
		if h := s.HealthChecks; h != (model.HealthCounts{}) {
			health = fmt.Sprintf("health checks: %d ok, %d warning, %d critical, %d unknown\n", h.OK, h.Warning, h.Critical, h.Unknown)
		}
		_, err = fmt.Fprintf(a.stdout, "resources %d, unique %d: %d changed, %d stable, %d refreshed, %d failed, %d skipped, %d unmet, in %s\n%s",
			s.Total, s.Unique, s.Changed, s.Stable, s.Refreshed, s.Failed, s.Skipped, s.Unmet, s.TotalDuration, health)
	}
	if err != nil || !remove {
		return err
	}

	return session.Remove()
}
