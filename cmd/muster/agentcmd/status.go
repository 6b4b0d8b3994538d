package agentcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/model"
)

// answerWithin is the maximum time for an answer of the agent, even during a run.
const answerWithin = 5 * time.Second

// askCommand sends a request to the agent on this machine.
type askCommand struct {
	runCommand
	print.Format
	level string
}

func addStatus(env *cli.Env, parent *fisk.CmdClause) {
	c := &askCommand{runCommand: runCommand{Env: env}}
	status := parent.Command("status", "Show the status of the agent on this machine")
	status.HelpLong("Shows the connection of the running agent, its current runs, the last run of each manifest with its failures, and the number of unpublished reports. Run it as root or as the user of the agent, because it uses the socket in the state directory. Exits with 1 if no agent runs.")
	status.Flag("config", "Configuration file of the agent").PlaceHolder("FILE").StringVar(&c.file)
	c.AddFormat(status)
	status.Action(env.Action(c.status))
	level := parent.Command("log-level", "Show or set the log level of the agent on this machine, until it is restarted or reloaded")
	cli.EnumArg(level.Arg("level", "debug, info, warn or error"), &c.level, "debug", "info", "warn", "error")
	level.Flag("config", "Configuration file of the agent").PlaceHolder("FILE").StringVar(&c.file)
	level.Action(env.Action(c.logLevel))
}

func (c *askCommand) ask(ctx context.Context, method, path string, in, out any) error {
	// The socket needs no NATS connection, so ignore the NATS flags.
	c.Flags.Connect = connect.Options{}
	config, err := c.config()
	var exit *cli.ExitError
	if _, invalid := model.FindProblems(err); err != nil && (!invalid || errors.As(err, &exit)) {
		return err
	}
	// An invalid configuration may have been valid when the agent started, so use its state directory.
	c.overrideConfig(&config)
	dir := config.StateDir
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	switch err := status.Ask(ctx, dir, method, path, in, out); {
	case errors.Is(err, status.ErrNotRunning):
		missing := ""
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			missing = "; the directory does not exist: if it was removed from a running agent, restart the agent"
		}
		return fmt.Errorf("no agent runs with the state directory %s (start it with systemctl start muster or muster agent run; name another directory with --config or --state-dir)%s", dir, missing)
	case errors.Is(err, status.ErrDenied):
		return fmt.Errorf("cannot ask the agent with the state directory %s: %w (run this as one of them)", dir, err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the agent with the state directory %s does not answer within %s (see its log, such as journalctl -u muster)", dir, answerWithin)
	default:
		return err
	}
}

func (c *askCommand) logLevel(ctx context.Context) error {
	method, in := http.MethodGet, any(nil)
	if c.level != "" {
		method, in = http.MethodPut, agent.LogLevel{Level: c.level}
	}
	var now agent.LogLevel
	if err := c.ask(ctx, method, agent.RouteLogLevel, in, &now); err != nil {
		return err
	}
	c.Print.Printf("%s\n", now.Level)

	return nil
}

func (c *askCommand) status(ctx context.Context) error {
	var found model.AgentStatus
	if err := c.ask(ctx, http.MethodGet, agent.RouteStatus, nil, &found); err != nil {
		return err
	}

	return c.Print.Result(c.Format, found, func() { showStatus(c.Print, found, time.Now()) })
}

// maxNamed is the maximum number of named resources of a run.
const maxNamed = 3

func about(r model.RunningRun) string {
	out := r.Manifest
	for i, ref := range r.Part {
		if i == maxNamed {
			return fmt.Sprintf("%s and %d more", out, len(r.Part)-maxNamed)
		}
		out += " " + ref.String()
	}

	return out
}

func showStatus(p print.Printer, s model.AgentStatus, now time.Time) {
	line := func(name, format string, args ...any) {
		p.Printf("%-10s %s\n", name, print.Text(fmt.Sprintf(format, args...)))
	}
	line("agent", "muster %s, pid %d, up %s", s.Version, s.PID, age(now, s.Started))
	if !s.Stopping.IsZero() {
		line("state", "%s", stopping(s, now))
	}
	line("node", "%s, groups %s", s.Node, strings.Join(append(s.Groups, model.GroupAll), ", "))
	if s.Paused != nil {
		line("paused", "%s (%s)", cmp.Or(s.Paused.Details(), "paused"), s.Paused.From)
	}
	line("NATS", "%s", connection(s.NATS, now))
	if s.NATS.Error != "" {
		line("", "last error %s ago: %s", age(now, s.NATS.ErrorAt), s.NATS.Error)
	}
	for _, r := range s.Running {
		if r.WaitsFor == "" {
			line("running", "%s (%s) since %s", about(r), r.Cause, age(now, r.Started))
		} else {
			line("waiting", "%s (%s) since %s, for %s", about(r), r.Cause, age(now, r.Started), r.WaitsFor)
		}
	}
	line("outbox", "%s waiting", print.Count(s.Outbox, "report"))
	line("watched", "%s", print.Count(s.Watches, "resource"))
	if s.Polled > 0 {
		line("polled", "%s that cannot be watched", print.Count(s.Polled, "resource"))
	}
	for _, f := range s.Flapping {
		line("flapping", "%s of %s since %s, %s", f.Resource, f.Manifest, age(now, f.Since), f.By())
	}
	if s.Clock.Within > 0 { // otherwise the clock was not measured
		line("clock", "%s", s.Clock)
	}
	line("log level", "%s", s.LogLevel)
	for _, n := range s.Notices {
		line("notice", "%s", n)
	}
	p.Printf("\n")
	showManifests(p, s.Manifests, now)
	showRepairs(p, s.Manifests, now)
	showDeviations(p, s.Manifests)
}

// maxManifests is the maximum number of rows.
const maxManifests = 50

// showManifests prints a row per manifest, by key. If there are more than maxManifests, manifests that are
// not stable come first.
func showManifests(p print.Printer, manifests []model.AssignedManifest, now time.Time) {
	all := slices.Clone(manifests)
	if len(all) > maxManifests {
		slices.SortStableFunc(all, func(a, b model.AssignedManifest) int { return cmp.Compare(urgency(a), urgency(b)) })
	}
	shown := all[:min(len(all), maxManifests)]
	rows := print.Rows(shown, func(m model.AssignedManifest) []string { return statusRow(m, now) })
	p.Table([]string{"MANIFEST", "REVISION", "STATUS", "CAUSE", "LAST RUN", "CHANGED", "FAILED", "REASON"}, rows, "no manifests are assigned")
	if rest := all[len(shown):]; len(rest) > 0 {
		text := fmt.Sprintf("and %d more", len(rest))
		if urgency(rest[0]) == isStable {
			text += ", all stable"
		}
		p.Printf("%s (--json has all)\n", text)
	}
}

// The urgencies of manifests, most urgent first.
const (
	isFailing = iota
	isOpen
	isInactive
	isStable
)

func urgency(m model.AssignedManifest) int {
	switch status := statusOf(m); {
	case m.State.Outcome.IsFailure() || status == "rejected":
		return isFailing
	case status == "pending" || m.State.Late != "" || m.State.Outcome == model.OutcomeNoop:
		return isOpen
	case status == statusNotApplicable:
		return isInactive
	default:
		return isStable
	}
}

// statusNotApplicable is the status of an overridden manifest, or one with a false condition.
const statusNotApplicable = "not-applicable"

// statusOf returns the status of a manifest, as in muster fleet nodes.
func statusOf(m model.AssignedManifest) string {
	switch {
	case m.State.Rejected() && !m.State.Outcome.IsFailure():
		return "rejected"
	case m.State.Revision == 0 && m.State.Late == "":
		return statusNotApplicable
	default:
		return cmp.Or(string(m.State.Outcome), "pending")
	}
}

func stopping(s model.AgentStatus, now time.Time) string {
	text := "shutting down for " + age(now, s.Stopping)
	for i, r := range s.Running {
		if i == 0 {
			text += ", finishes the pending change of "
		} else {
			text += ", "
		}
		text += r.Manifest
	}

	return text
}

func connection(c model.Connected, now time.Time) string {
	switch {
	case c.Connected:
		return fmt.Sprintf("connected to %s for %s", c.Server, age(now, c.Since))
	case c.Since.IsZero():
		return "never connected, trying " + c.Server
	default:
		return fmt.Sprintf("disconnected for %s, trying %s", age(now, c.Since), c.Server)
	}
}

func statusRow(m model.AssignedManifest, now time.Time) []string {
	revision := strconv.FormatUint(m.State.Revision, 10)
	if m.State.Seen != 0 {
		revision += fmt.Sprintf(" (newest %d)", m.State.Seen)
	}
	if ran := m.State.Last().Revision; ran != 0 && ran != m.State.Revision {
		revision += fmt.Sprintf(" (ran %d)", ran)
	}
	late := m.State.Late
	if m.State.Outcome == "" && m.State.Revision != 0 {
		late = cmp.Or(late, m.State.Error, "first run not finished")
	}
	if m.State.Rejected() {
		late = strings.TrimPrefix(late, model.LateRejected)
	}
	row := []string{m.Key, revision, statusOf(m), "", "", "", "", print.OneLine(cmp.Or(late, m.State.Error))}
	if l := m.Last; l != nil {
		row[3], row[4] = string(l.Cause), age(now, l.Started)+" ago"
		row[5], row[6] = strconv.Itoa(l.Counts.Made()), strconv.Itoa(failures(l))
	}

	return row
}

// failures returns the number of resources that were tried and are not in the desired state now. Repairs
// after a run change its deviations but not its counts.
func failures(l *model.LastRun) int {
	count := 0
	for _, d := range l.Deviations {
		if d.Outcome != model.OutcomeNoop && d.Outcome != model.OutcomeNotRun {
			count++
		}
	}
	if l.More > 0 {
		return max(count, l.Counts.Failed+l.Counts.Unmet)
	}

	return count
}

func showRepairs(p print.Printer, manifests []model.AssignedManifest, now time.Time) {
	title := "\nlast repairs of drift:\n"
	for _, m := range manifests {
		if m.Last == nil || m.Last.Repair == nil {
			continue
		}
		r := m.Last.Repair
		text := fmt.Sprintf("%s of %s: %s %s ago", r.Resource, m.Key, r.Outcome, age(now, r.At))
		if r.Latency > 0 {
			text += ", " + model.ShortDuration(r.Latency.Std()) + " after it was noticed"
		}
		p.Printf("%s  %s\n", title, print.Text(text))
		title = ""
	}
}

func showDeviations(p print.Printer, manifests []model.AssignedManifest) {
	var rows [][]string
	more := 0
	for _, m := range manifests {
		if m.Last == nil {
			continue
		}
		more += m.Last.More
		for _, d := range m.Last.Deviations {
			rows = append(rows, []string{d.Resource, string(d.Outcome), m.Key, print.OneLine(d.Reason)})
		}
	}
	if len(rows) == 0 {
		return
	}
	p.Printf("\nnot in the desired state:\n")
	p.Table([]string{"RESOURCE", "STATUS", "MANIFEST", "REASON"}, rows, "")
	if more > 0 {
		p.Printf("and %d more, see muster fleet reports\n", more)
	}
}

func age(now, at time.Time) string { return max(now.Sub(at), 0).Round(time.Second).String() }
