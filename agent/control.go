package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/control"
	"github.com/musterfleet/muster/agent/gate"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/sparse"
)

// openControl opens what is on disk of what operators wrote about the node.
func (a *Agent) openControl(o Options, trust *gate.Gate, wakes *wakes) (err error) {
	rejected := sparse.Log{}
	a.control, err = control.Open(control.Options{
		Host: o.Host, Path: filepath.Join(o.Config.StateDir, "control.json"), Source: o.Control, Gate: trust, Clock: o.Clock, Log: a.log,
		Families: func() []string { c := a.config.get(); return model.Families(c.Node, c.Groups) },
		Changed: func() {
			a.noteControl()
			if a.takeGroups() {
				a.config.warnUnsignable(context.Background(), a.log)
				wakes.assignmentsChanged()
				a.control.Wake()
				o.GroupsChanged()
			}
			wakes.signal.Notify()
		},
		Rejected: func(why string) {
			rejected.Log(context.Background(), a.log, slog.LevelError, "control document rejected", "error", why)
			a.report.Node("", model.NodeRefused, bounds.Text(why))
		},
	})
	if err == nil {
		a.noteControl()
		a.takeGroups()
	}

	return err
}

// takeGroups has the node be in the groups that operators put it into, beside those of its
// configuration, and reports whether these are others than before.
func (a *Agent) takeGroups() bool {
	groups := a.control.Groups()
	if !a.config.setGroups(groups) {
		return false
	}
	a.log.Info("groups of operators in effect", "groups", strings.Join(groups, ","))
	a.watchGroups()
	a.status.Changed.Notify()

	return true
}

// watchGroups has the buckets be watched for the groups that the node is in now.
func (a *Agent) watchGroups() {
	a.config.useGroups(func(groups []string) {
		a.watch.SetGroups(slices.Clone(groups))
		if a.written != nil {
			a.written.SetGroups(slices.Clone(groups))
		}
	})
}

// noteControl shows what operators wrote about the node.
func (a *Agent) noteControl() {
	problem, unread := "", ""
	if all := a.control.Problems(); len(all) > 0 {
		problem = rejectedControl(all)
	}
	if err := a.control.Unread(); err != nil {
		unread = bounds.Text("what operators write about the node cannot be read: " + err.Error())
	}
	a.status.SetControl(a.control.Paused(), a.control.Labels(), problem, unread)
}

// rejectedControl describes documents that were rejected, of many the first ones, each bounded.
func rejectedControl(all []string) string {
	const most = 3
	var out []string
	for _, why := range all[:min(len(all), most)] {
		out = append(out, bounds.Text("rejected: "+why))
	}
	if len(all) > most {
		out = append(out, fmt.Sprintf("and %d more", len(all)-most))
	}

	return strings.Join(out, "; ")
}

// pauseText describes the pause that holds, empty for none.
func (a *Agent) pauseText() string {
	if p := a.control.Paused(); p != nil {
		return p.String()
	}

	return ""
}

// followControl keeps what operators write about the node current until ctx ends.
func (a *Agent) followControl(ctx context.Context, all *sync.WaitGroup) {
	if a.written == nil {
		return
	}
	last := a.control.Memory()
	all.Go(func() {
		tasks.Repeat(ctx, a.log, "watching control documents", nil, func(ctx context.Context) error {
			err := a.written.Run(ctx, last, func([]string) { a.control.Wake() })
			if err == nil {
				err = errors.New("it ended by itself")
			}
			return err
		})
	})
	all.Go(func() { tasks.Repeat(ctx, a.log, "reading control documents", nil, a.control.Run) })
}
