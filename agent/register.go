package agent

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/registration"
)

// renewals is how often a registration is told within its TTL, so that one word
// may be lost.
const renewals = 3

// Registry tells others of services.
type Registry interface {
	// Register tells of a service for its TTL.
	Register(ctx context.Context, r model.Registration) error
}

// source is what registers: a resource of a manifest.
type source struct {
	key string
	ref model.Ref
}

// standing is a registration that is renewed while its resource is in its state.
type standing struct {
	model.Registration
	// next is when it is told again.
	next time.Time
	wait tasks.Backoff
}

// registrations are those that stand.
type registrations struct {
	slot tasks.Signal
	mu   sync.Mutex
	all  map[source][]*standing
	// fallen are those of which a health check is critical; they are told again
	// when none is.
	fallen map[source]bool
}

// set makes the entries those of a resource; without any it registers nothing
// more, and what was told of it ends by its TTL.
func (s *registrations) set(from source, node string, entries []model.RegisterEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.fallen, from)
	if len(entries) == 0 {
		delete(s.all, from)
		return
	}
	all := make([]*standing, len(entries))
	for i, e := range entries {
		all[i] = &standing{Registration: registration.Of(e, node)}
		for _, old := range s.all[from] {
			if reflect.DeepEqual(old.Registration, all[i].Registration) {
				all[i] = old
			}
		}
	}
	s.all[from] = all
	s.slot.Notify()
}

// fall makes what a resource registers not be told any more, until it is well
// again.
func (s *registrations) fall(from source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[from] != nil {
		s.fallen[from] = true
	}
}

// rise tells again what fell.
func (s *registrations) rise(from source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.fallen[from] {
		return
	}
	delete(s.fallen, from)
	for _, r := range s.all[from] {
		r.next = time.Time{}
	}
	s.slot.Notify()
}

// keep forgets what registers and is not to any more.
func (s *registrations) keep(wanted func(source) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for from := range s.all {
		if !wanted(from) {
			delete(s.all, from)
			delete(s.fallen, from)
		}
	}
}

func (s *registrations) none() bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	return len(s.all) == 0
}

// due gives those that are to be told now, and when the next one is.
func (s *registrations) due(now time.Time) (due []*standing, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next = now.Add(time.Hour)
	for from, all := range s.all {
		if s.fallen[from] {
			continue
		}
		for _, r := range all {
			if !now.Before(r.next) {
				due = append(due, r)
				continue
			}
			next = tasks.Earliest(next, r.next)
		}
	}

	return due, next
}

// again makes all due at once.
func (s *registrations) again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, all := range s.all {
		for _, r := range all {
			r.next = time.Time{}
		}
	}
	s.slot.Notify()
}

// told notes when a registration is to be told next.
func (s *registrations) told(r *standing, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	every := tasks.Spread(r.TTL.Std()/renewals, tasks.Jitter)
	if err != nil {
		r.next = time.Now().Add(min(r.wait.Next(), every))
		return
	}
	r.wait.Reset()
	r.next = time.Now().Add(every)
}

// register tells of what registers, and again before its TTL ends.
func (a *Agent) register(ctx context.Context) error {
	stuck := false
	for {
		due, next := a.registered.due(time.Now())
		for _, r := range due {
			err := a.opts.Registry.Register(ctx, r.Registration)
			if ctx.Err() != nil {
				return nil
			}
			a.registered.told(r, err)
			if (err != nil) != stuck {
				stuck = err != nil
				a.logRegistering(ctx, r, err)
			}
		}
		if len(due) > 0 {
			continue
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		case <-a.registered.slot:
		}
		timer.Stop()
	}
}

func (a *Agent) logRegistering(ctx context.Context, r *standing, err error) {
	if err != nil {
		a.log.WarnContext(ctx, "a service cannot be registered, it is tried again", "service", r.Service, "cluster", r.Cluster, "error", err)
		return
	}
	a.log.InfoContext(ctx, "services are registered again", "service", r.Service, "cluster", r.Cluster)
}

// registers takes over what a resource of a unit has to tell others.
func (r *runner) registers(u *unit) func(model.Ref, []model.RegisterEntry) {
	return func(ref model.Ref, entries []model.RegisterEntry) {
		r.registered.set(source{u.key, ref}, r.opts.Config.Node, entries)
	}
}

// keepRegistered ends the registrations of what is not in force any more.
func (r *runner) keepRegistered() {
	if r.registered.none() {
		return
	}
	inForce := map[source]bool{}
	open := map[string]bool{}
	for _, u := range r.order {
		for _, res := range u.current.resolved.Resources {
			inForce[source{u.key, res.Ref()}] = len(res.Meta().RegisterWhenStable) > 0
			open[u.key] = open[u.key] || res.Expand != nil
		}
	}
	r.registered.keep(func(s source) bool { return inForce[s] || open[s.key] })
}
