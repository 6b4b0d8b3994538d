package localcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
)

// envSession names the session that ensure commands share.
const envSession = "MUSTER_SESSION_STORE"

// envSessionOfCCM is the name of envSession in scripts for CCM.
const envSessionOfCCM = "CCM_SESSION_STORE"

// sessionDir returns the directory of the session, empty for no session.
func sessionDir() string { return cmp.Or(os.Getenv(envSession), os.Getenv(envSessionOfCCM)) }

// openStore opens the session in a directory. It creates a session in an empty directory.
func openStore(ctx context.Context, h *host.Host, dir string) (*engine.SessionStore, error) {
	if empty, err := files.IsEmpty(dir); err == nil && empty {
		return engine.NewSession(ctx, h, dir)
	}

	return engine.OpenSession(h, dir)
}

// errNoSession is a session command outside of a session.
var errNoSession = errors.New("no session: start one with eval $(muster session new)")

// sessionContext is the session that a command belongs to, with what earlier
// commands of it did; nil outside of a session.
type sessionContext struct {
	store   *engine.SessionStore
	history plan.History
}

// known reports whether an earlier command of the session had a resource.
func (s *sessionContext) known(ref model.Ref) bool {
	return s != nil && s.history.Knows(ref)
}

func openSession(ctx context.Context, h *host.Host) (*sessionContext, error) {
	dir := sessionDir()
	if dir == "" {
		return nil, nil
	}
	store, err := openStore(ctx, h, dir)
	if err != nil {
		return nil, err
	}
	history, err := store.History()

	return &sessionContext{store: store, history: history}, err
}

// sessionReport is muster session report.
type sessionReport struct {
	*cli.Env
	print.Format
	remove bool
}

func addSession(env *cli.Env, app *fisk.Application) {
	parent := app.Command("session", "Let ensure commands reach each other's resources")
	parent.HelpLong("Commands of a shell share the session that MUSTER_SESSION_STORE names.\n\n  eval $(muster session new)\n  muster ensure file /etc/motd …\n  muster ensure exec reload --refresh-only --subscribe file#/etc/motd\n  muster session report --remove")
	parent.Command("new", "Start a session; prints a line to eval in a shell").Action(env.Action(func(ctx context.Context) error { return newSession(ctx, env) }))
	c := &sessionReport{Env: env}
	report := parent.Command("report", "Summarise the session")
	c.AddFormat(report)
	report.Flag("remove", "Delete the session afterwards").UnNegatableBoolVar(&c.remove)
	report.Action(env.Action(c.run))
}

func newSession(ctx context.Context, env *cli.Env) error {
	dir, err := os.MkdirTemp("", "muster-session-")
	if err != nil {
		return err
	}
	if _, err := engine.NewSession(ctx, env.Host(), dir); err != nil {
		return errors.Join(err, os.Remove(dir))
	}
	_, err = fmt.Fprintf(env.Print.Out, "export %s=%s\n", envSession, dir)

	return err
}

func (c *sessionReport) run(ctx context.Context) error {
	dir := sessionDir()
	if dir == "" {
		return errNoSession
	}
	store, err := openStore(ctx, c.Host(), dir)
	if err != nil {
		return err
	}
	s, err := store.Summary()
	if err != nil {
		return err
	}
	if c.IsDocument() {
		err = c.Print.Document(s, c.YAML)
	} else {
		_, err = io.WriteString(c.Print.Out, sessionText(s))
	}
	if err != nil || !c.remove {
		return err
	}

	return store.Remove()
}

func sessionText(s engine.SessionSummary) string {
	text := fmt.Sprintf("resources %d, unique %d: %d changed, %d stable, %d refreshed, %d failed, %d skipped, %d unmet, in %s\n",
		s.Total, s.Unique, s.Made(), s.Stable, s.Refreshed, s.Failed, s.Skipped, s.Unmet, s.TotalDuration)
	if s.Noop > 0 {
		text += fmt.Sprintf("noop: %d would change\n", s.Noop)
	}
	if h := s.HealthChecks; h != (model.HealthCounts{}) {
		text += fmt.Sprintf("health checks: %d ok, %d warning, %d critical, %d unknown\n", h.OK, h.Warning, h.Critical, h.Unknown)
	}

	return text
}
