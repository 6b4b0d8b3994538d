package simulate

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/model"
)

// machine contains the visible properties of a node.
type machine struct {
	Script
	cpuFlags []any
	// joined are the groups of the script and the operators' groups.
	joined atomic.Pointer[[]string]
}

func newMachine(f *Fleet, s Script) *machine {
	if s.Version == "" {
		s.Version = f.o.Version
	}
	m := &machine{Script: s, cpuFlags: f.cpuFlags}
	m.joined.Store(&m.Script.Groups)

	return m
}

// groups returns all groups of the node, the winning group first. Callers must not change them.
func (m *machine) groups() []string { return *m.joined.Load() }

// join adds the operators' groups, and reports whether the groups changed.
func (m *machine) join(given model.Groups) (changed bool) {
	all := given.Join(m.Groups, nil)
	if slices.Equal(all, m.groups()) {
		return false
	}
	m.joined.Store(&all)

	return true
}

// families returns the families of its assignments, by precedence.
func (m *machine) families() []string { return model.Families(m.Node, m.groups()) }

// config returns the visible part of a configuration.
func (m *machine) config() config.Config {
	c := config.Config{Node: m.Node, Groups: m.groups(), Labels: m.Labels, Heartbeat: model.Duration(time.Minute), StateTTL: model.Duration(5 * time.Minute)}
	if m.Kind == KindSilent {
		c.StateTTL = model.Duration(time.Second)
	}

	return c
}

// now returns the time by its clock.
func (m *machine) now() time.Time { return time.Now().UTC().Add(m.Skew) }

// identified returns a state with the host and time of the machine.
func (m *machine) identified(s model.NodeState) model.NodeState {
	s.Host, s.Started, s.At = m.Host, s.Started.Add(m.Skew), s.At.Add(m.Skew)

	return s
}

// factsNow returns its facts.
func (m *machine) factsNow() model.Facts { return m.facts(time.Now(), m.cpuFlags) }

// failing returns the index of the failing resource, -1 for none.
func (m *machine) failing(of *Manifest) int {
	if m.Error == "" || len(of.Resources) == 0 {
		return -1
	}

	return int(m.seed[1] % uint64(len(of.Resources)))
}

// begin returns the summary of a new run.
func (m *machine) begin(key string, revision uint64, digest string, cause model.Cause) *model.Run {
	return &model.Run{
		Protocol: model.ProtocolRun, RunID: ksuid.New().String(), Node: m.Node, Manifest: key, Revision: revision, Digest: digest,
		Cause: cause, Started: m.now(), Version: m.Version,
	}
}

// transaction returns the transaction of a resource that was in its desired state.
func (m *machine) transaction(run *model.Run, r *Resource) *model.Transaction {
	return &model.Transaction{
		Protocol: model.ProtocolTransaction, EventID: ksuid.New().String(), Timestamp: m.now(), Type: r.Ref.Type, Name: r.Ref.Name,
		Provider: r.Provider, Alias: r.Alias, RequestedEnsure: r.Ensure, FinalEnsure: r.Ensure, Source: r.Source, Properties: r.Properties,
		RunID: run.RunID, Node: m.Node, Manifest: run.Manifest, Revision: run.Revision, Digest: run.Digest, Cause: run.Cause, Noop: run.Noop,
		CorrelationID: run.CorrelationID,
	}
}
