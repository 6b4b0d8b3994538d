package agent

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/model/telemetry"
)

type settings struct {
	mu     sync.Mutex
	config Config
	groups model.Groups
	using  sync.Mutex
}

// get returns the configuration with all groups of the node, highest precedence first.
func (s *settings) get() Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.config
	c.Groups = s.groups.Join(c.Groups, c.GroupsOrder)

	return c
}

// useGroups calls use with all groups of the node. Calls do not overlap, so the last call has the current
// groups.
func (s *settings) useGroups(use func(groups []string)) {
	s.using.Lock()
	defer s.using.Unlock()
	use(s.get().Groups)
}

func (s *settings) setGroups(groups model.Groups) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = !slices.Equal(s.groups.Groups, groups.Groups) || !slices.Equal(s.groups.Order, groups.Order)
	s.groups = groups

	return changed
}

func (s *settings) apply(c Config) (applied, needRestart []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config, applied, needRestart = s.config.Apply(c)

	return applied, needRestart
}

func (s *settings) policy() signed.Policy {
	c := s.get()

	return c.Policy()
}

// warnUnsignable logs the families without a trusted key that may sign for them. They accept no values.
func (s *settings) warnUnsignable(ctx context.Context, log *slog.Logger) {
	c := s.get()
	if families := c.Unsignable(); len(families) > 0 {
		log.WarnContext(ctx, "no key of trust.keys may sign for these families, which accept nothing", "families", strings.Join(families, ","))
	}
}

func (s *settings) opener(g *desired.Gate) func(context.Context, []byte, signed.Action) (desired.Opened, error) {
	return func(ctx context.Context, data []byte, action signed.Action) (desired.Opened, error) {
		c := s.get()

		return g.Request(ctx, data, action, model.Families(c.Node, c.Groups))
	}
}

// untrustedEvery is the minimum time between two reports about untrusted requests. Each sender receives an
// answer.
const untrustedEvery = time.Minute

// untrusted reports requests without the required signatures.
type untrusted struct {
	report *reporting.Reporter
	log    *slog.Logger

	mu sync.Mutex
	// last is the time of the last report. more is the number of later requests.
	last time.Time
	more int
}

func (u *untrusted) note(why string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if now.Sub(u.last) < untrustedEvery {
		u.more++
		return
	}
	u.log.Warn("request rejected", "error", why, "rejected_since_last", u.more)
	u.last, u.more = now, 0
	u.report.Node("", model.NodeRefused, "request: "+bounds.Text(strings.TrimPrefix(why, "request: ")))
}

type operators struct {
	control *desired.Control
	// written is the bucket of control documents, nil for none. assignments is the bucket that is also
	// watched by group.
	written     Watched
	assignments Assignments
	config      *settings
	status      *status.Node
	log         *slog.Logger
}

func (a *Agent) openControl(o Options, trust *desired.Gate, wakes *wakes) (err error) {
	by, rejected := &operators{written: o.Control, assignments: o.Assignments, config: a.config, status: a.status, log: a.log}, telemetry.RateLimitedLog{}
	a.operators = by
	by.control, err = desired.OpenControl(desired.ControlOptions{
		Host: o.Host, Path: filepath.Join(o.Config.StateDir, "control.json"), Source: o.Control, Gate: trust, Clock: o.Clock, Log: a.log,
		Families: func() []string { c := a.config.get(); return model.Families(c.Node, c.Groups) },
		Changed: func() {
			by.control.Show(a.status.SetControl)
			by.holdGroups()
			if by.takeGroups() {
				a.config.warnUnsignable(context.Background(), a.log)
				wakes.assignmentsChanged()
				by.control.Wake()
				o.GroupsChanged()
			}
			wakes.signal.Notify()
			wakes.assign.Notify()
		},
		Rejected: func(why string) {
			rejected.Log(context.Background(), a.log, slog.LevelError, "control document rejected", "error", why)
			a.report.Node("", model.NodeRefused, bounds.Text(why))
		},
	})
	if err == nil {
		by.control.Show(a.status.SetControl)
		by.takeGroups()
	}

	return err
}

// holdGroups omits new groups from the state until the node has tried to read their assignments. A state with
// a group therefore shows whether NATS permits the group.
func (o *operators) holdGroups() {
	groups, current := o.control.Groups().Groups, o.config.get().Groups
	o.status.UpdateJoining(func(joining []string) []string {
		return slices.DeleteFunc(slices.Clone(groups), func(g string) bool {
			return slices.Contains(current, g) && !slices.Contains(joining, g)
		})
	})
}

// takeGroups adds the operators' groups to the groups of the configuration, and reports whether the groups
// changed.
func (o *operators) takeGroups() bool {
	groups := o.control.Groups()
	if !o.config.setGroups(groups) {
		return false
	}
	o.log.Info("groups of operators in effect", "groups", strings.Join(groups.Groups, ","), "order", strings.Join(groups.Order, ","))
	o.watchGroups()
	o.status.Changed.Notify()

	return true
}

func (o *operators) watchGroups() {
	o.config.useGroups(func(groups []string) {
		o.assignments.SetGroups(slices.Clone(groups))
		if o.written != nil {
			o.written.SetGroups(slices.Clone(groups))
		}
	})
}

func (o *operators) follow(ctx context.Context, all *sync.WaitGroup) {
	if o.written == nil {
		return
	}
	last := o.control.Memory()
	all.Go(func() {
		tasks.Repeat(ctx, o.log, "watching control documents", nil, func(ctx context.Context) error {
			return o.written.Run(ctx, last, func([]string) { o.control.Wake() })
		})
	})
	all.Go(func() { tasks.Repeat(ctx, o.log, "reading control documents", nil, o.control.Run) })
}
