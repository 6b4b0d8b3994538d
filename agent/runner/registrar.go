package runner

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

// renewals is the number of messages within a TTL. One of them may be lost.
const renewals = 3

// longestWait limits the wait without registrations. longestTTL limits the wait between renewals, in case
// the server lost the registration.
const (
	longestWait = time.Hour
	longestTTL  = 24 * time.Hour
)

// Registry announces services to others.
type Registry interface {
	// Register announces a service for its TTL.
	Register(ctx context.Context, r registration.Registration) error
}

// Source is the resource that registers a service.
type Source struct {
	Manifest string
	Resource model.Ref
}

type activeRegistration struct {
	registration.Registration
	next time.Time
	wait tasks.Backoff
}

// Registrar renews the registrations of a node. Its methods are safe for concurrent use.
type Registrar struct {
	node     string
	registry Registry
	log      *slog.Logger
	changed  tasks.Signal

	mu     sync.Mutex
	active map[Source][]*activeRegistration
	// deregistered holds the sources with a critical health check. They are not renewed.
	deregistered map[Source]bool
}

// NewRegistrar returns the registrar of a node, without registrations.
func NewRegistrar(node string, registry Registry, log *slog.Logger) *Registrar {
	return &Registrar{
		node: node, registry: registry, log: log, changed: tasks.NewSignal(),
		active: map[Source][]*activeRegistration{}, deregistered: map[Source]bool{},
	}
}

// Set replaces the registrations of a resource. Removed registrations end by their TTL.
func (r *Registrar) Set(from Source, entries []model.RegisterEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.deregistered, from)
	if len(entries) == 0 {
		delete(r.active, from)
		return
	}
	all := make([]*activeRegistration, len(entries))
	for i, e := range entries {
		all[i] = &activeRegistration{Registration: registration.Of(e, r.node)}
		for _, old := range r.active[from] {
			if reflect.DeepEqual(old.Registration, all[i].Registration) {
				all[i] = old
			}
		}
	}
	r.active[from] = all
	r.changed.Notify()
}

// Deregister stops the renewal of the registrations of a resource.
func (r *Registrar) Deregister(from Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active[from] != nil {
		r.deregistered[from] = true
	}
}

// Reregister resumes the renewal of the registrations of a resource.
func (r *Registrar) Reregister(from Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.deregistered[from] {
		return
	}
	delete(r.deregistered, from)
	for _, a := range r.active[from] {
		a.next = time.Time{}
	}
	r.changed.Notify()
}

// Retain removes the registrations of all other sources.
func (r *Registrar) Retain(wanted func(Source) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for from := range r.active {
		if !wanted(from) {
			delete(r.active, from)
			delete(r.deregistered, from)
		}
	}
}

// RenewAll makes all registrations due.
func (r *Registrar) RenewAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, all := range r.active {
		for _, a := range all {
			a.next = time.Time{}
		}
	}
	r.changed.Notify()
}

// Run sends due registrations until ctx ends.
func (r *Registrar) Run(ctx context.Context) error {
	failing := false
	for ctx.Err() == nil {
		due, next := r.due(time.Now())
		for _, a := range due {
			err := r.send(ctx, a)
			if ctx.Err() != nil {
				return nil
			}
			if (err != nil) != failing {
				failing = err != nil
				r.logState(ctx, a, err)
			}
		}
		if len(due) == 0 {
			tasks.Pause(ctx, time.Until(next), r.changed)
		}
	}

	return nil
}

func (r *Registrar) due(now time.Time) (due []*activeRegistration, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next = now.Add(longestWait)
	for from, all := range r.active {
		if r.deregistered[from] {
			continue
		}
		for _, a := range all {
			if !now.Before(a.next) {
				due = append(due, a)
				continue
			}
			next = model.EarlierTime(next, a.next)
		}
	}

	return due, next
}

func (r *Registrar) send(ctx context.Context, a *activeRegistration) error {
	err := r.registry.Register(ctx, a.Registration)
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := tasks.Spread(min(a.TTL.Std(), longestTTL)/renewals, tasks.Jitter)
	if err != nil {
		wait = min(a.wait.Next(), wait)
	} else {
		a.wait.Reset()
	}
	a.next = time.Now().Add(wait)

	return err
}

func (r *Registrar) logState(ctx context.Context, a *activeRegistration, err error) {
	log := r.log.With("service", a.Service, "cluster", a.Cluster)
	if err != nil {
		log.WarnContext(ctx, "service registration failed, will retry", "error", err)
		return
	}
	log.InfoContext(ctx, "service registration resumed")
}

// recallRegistrations registers the services that an earlier process registered if no run does so soon: the
// node is paused, or drift is not repaired. Resources with health checks wait for them if passes are
// enabled.
func recallRegistrations(to *Registrar, key string, v *desired.Version, paused, checked bool) {
	for _, res := range v.Resolution.Resources {
		meta, from := res.Meta(), Source{Manifest: key, Resource: res.Ref()}
		unchanged := v.Noop || meta.Noop || res.Scope.Noop || res.Scope.HealthCheckOnly || res.Excluded != ""
		if unchanged || !paused && meta.Drift != model.DriftReport && meta.Drift != model.DriftIgnore {
			continue
		}
		to.Set(from, meta.RegisterWhenStable)
		if len(meta.HealthChecks) > 0 && checked {
			to.Deregister(from)
		}
	}
}

func retainRegistrations(in *Registrar, view *desired.View) {
	active, open := map[Source]bool{}, map[string]bool{}
	for _, key := range view.Keys() {
		refs, more := view.Active(key).Registers()
		open[key] = more
		for _, ref := range refs {
			active[Source{Manifest: key, Resource: ref}] = true
		}
	}
	in.Retain(func(s Source) bool { return active[s] || open[s.Manifest] })
}
