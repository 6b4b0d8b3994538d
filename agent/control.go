package agent

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/musterfleet/muster/agent/bounds"

	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/telemetry"
)

// operators applies the pauses, labels and groups from operators.
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

// openControl opens the stored control documents.
func (a *Agent) openControl(o Options, trust *desired.Gate, wakes *wakes) (err error) {
	by, rejected := &operators{written: o.Control, assignments: o.Assignments, config: a.config, status: a.status, log: a.log}, telemetry.RateLimitedLog{}
	a.operators = by
	by.control, err = desired.OpenControl(desired.ControlOptions{
		Host: o.Host, Path: filepath.Join(o.Config.StateDir, "control.json"), Source: o.Control, Gate: trust, Clock: o.Clock, Log: a.log,
		Families: func() []string { c := a.config.get(); return model.Families(c.Node, c.Groups) },
		Changed: func() {
			by.show()
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
		by.show()
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

// watchGroups sets the watched groups of the buckets.
func (o *operators) watchGroups() {
	o.config.useGroups(func(groups []string) {
		o.assignments.SetGroups(slices.Clone(groups))
		if o.written != nil {
			o.written.SetGroups(slices.Clone(groups))
		}
	})
}

// show adds the control documents to the state.
func (o *operators) show() { o.control.Show(o.status.SetControl) }

// pauseText describes the active pause, empty for none.
func (o *operators) pauseText() string {
	if pause := o.control.Paused(); pause != nil {
		return pause.String()
	}

	return ""
}

// follow keeps the control documents current until ctx ends.
func (o *operators) follow(ctx context.Context, all *sync.WaitGroup) {
	if o.written == nil {
		return
	}
	last := o.control.Memory()
	all.Go(func() {
		tasks.Repeat(ctx, o.log, "watching control documents", nil, func(ctx context.Context) error {
			err := o.written.Run(ctx, last, func([]string) { o.control.Wake() })
			if err == nil {
				err = errors.New("it ended by itself")
			}
			return err
		})
	})
	all.Go(func() { tasks.Repeat(ctx, o.log, "reading control documents", nil, o.control.Run) })
}
