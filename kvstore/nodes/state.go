package nodes

import (
	"encoding/json"

	"github.com/musterfleet/muster/model"
)

// states decodes the states of nodes, as json.Unmarshal does. One goroutine uses it. The states of
// a fleet are most of what its overview costs.
type states struct{ shared map[string]string }

func newStates() *states { return &states{map[string]string{}} }

// decode decodes a state. Its error is that of json.Unmarshal.
func (s *states) decode(data []byte, into *model.NodeState) error {
	r := &reader{data: data, shared: s.shared}
	var out model.NodeState
	r.state(&out)
	if r.next() != 0 || r.at < len(data) {
		r.leave()
	}
	if !r.off {
		*into = out
		return nil
	}

	return json.Unmarshal(data, into)
}

// state reads the state of a node.
func (r *reader) state(n *model.NodeState) {
	r.object(func(name []byte) uint32 {
		switch string(name) {
		case "protocol":
			n.Protocol = r.text()
			return 1 << 0
		case "node":
			n.Node = r.text()
			return 1 << 1
		case "event":
			n.Event = model.NodeEvent(r.text())
			return 1 << 2
		case "host":
			n.Host = r.text()
			return 1 << 3
		case "version":
			n.Version = r.text()
			return 1 << 4
		case "started":
			n.Started = r.time()
			return 1 << 5
		case "at":
			n.At = r.time()
			return 1 << 6
		case "groups":
			n.Groups = r.texts()
			return 1 << 7
		case "labels":
			n.Labels = r.labels()
			return 1 << 8
		case "manifests":
			n.Manifests = r.manifests()
			return 1 << 9
		case "health":
			r.health(&n.Health)
			return 1 << 10
		case "outbox":
			n.Outbox = int(r.number())
			return 1 << 11
		case "watches":
			n.Watches = int(r.number())
			return 1 << 12
		case "polled":
			n.Polled = int(r.number())
			return 1 << 13
		case "message":
			n.Message = r.text()
			return 1 << 14
		case "silent_after":
			r.unmarshal(&n.SilentAfter)
			return 1 << 15
		case "clock":
			r.clock(&n.Clock)
			return 1 << 16
		case "paused":
			r.rest(&n.Paused)
			return 1 << 17
		case "flapping":
			r.rest(&n.Flapping)
			return 1 << 18
		default:
			return 0 // encoding/json knows names that differ in case, too
		}
	})
}

// unmarshal reads a text that a value of its own form decodes.
func (r *reader) unmarshal(into interface{ UnmarshalText([]byte) error }) {
	if text := r.plain(); !r.off && into.UnmarshalText(text) != nil {
		r.leave()
	}
}

// clock reads how a clock differs.
func (r *reader) clock(c *model.ClockOffset) {
	r.object(func(name []byte) uint32 {
		switch string(name) {
		case "offset":
			r.unmarshal(&c.Offset)
			return 1 << 0
		case "within":
			r.unmarshal(&c.Within)
			return 1 << 1
		default:
			return 0
		}
	})
}

// texts reads a list of texts.
func (r *reader) texts() []string {
	r.take('[')
	out := []string{}
	for first := true; !r.ends(']', &first); {
		out = append(out, r.text())
	}

	return out
}

// labels reads a mapping of texts.
func (r *reader) labels() map[string]string {
	r.take('{')
	out := map[string]string{}
	for first := true; !r.ends('}', &first); {
		name := r.text()
		r.take(':')
		out[name] = r.text()
	}

	return out
}

// manifests reads the manifests of a node by their keys.
func (r *reader) manifests() map[string]model.ManifestState {
	r.take('{')
	out := make(map[string]model.ManifestState, 8)
	for first := true; !r.ends('}', &first); {
		key := r.text()
		r.take(':')
		var m model.ManifestState
		r.manifest(&m)
		out[key] = m
	}

	return out
}

// manifest reads the status of a manifest.
func (r *reader) manifest(m *model.ManifestState) {
	r.object(func(name []byte) uint32 {
		switch string(name) {
		case "revision":
			m.Revision = r.count()
			return 1 << 0
		case "digest":
			m.Digest = r.text()
			return 1 << 1
		case "outcome":
			m.Outcome = model.Outcome(r.text())
			return 1 << 2
		case "at":
			m.At = r.time()
			return 1 << 3
		case "counts":
			r.counts(&m.Counts)
			return 1 << 4
		case "error":
			m.Error = r.text()
			return 1 << 5
		case "seen":
			m.Seen = r.count()
			return 1 << 6
		case "seen_at":
			m.SeenAt = r.time()
			return 1 << 7
		case "late":
			m.Late = r.text()
			return 1 << 8
		default:
			return 0
		}
	})
}

// counts reads the counts of a run.
func (r *reader) counts(c *model.Counts) {
	r.object(func(name []byte) uint32 {
		numbers := [...]struct {
			name string
			into *int
		}{
			{"total", &c.Total}, {"unique", &c.Unique}, {"changed", &c.Changed}, {"failed", &c.Failed}, {"skipped", &c.Skipped}, {"stable", &c.Stable},
			{"refreshed", &c.Refreshed}, {"unmet", &c.Unmet}, {"not_run", &c.NotRun}, {"noop", &c.Noop},
		}
		for i, n := range numbers {
			if n.name == string(name) {
				*n.into = int(r.number())
				return 1 << i
			}
		}
		if string(name) == "health_checks" {
			r.health(&c.HealthChecks)
			return 1 << len(numbers)
		}
		return 0
	})
}

// health reads counts of health checks.
func (r *reader) health(c *model.HealthCounts) {
	r.object(func(name []byte) uint32 {
		switch string(name) {
		case "ok":
			c.OK = int(r.number())
			return 1 << 0
		case "warning":
			c.Warning = int(r.number())
			return 1 << 1
		case "critical":
			c.Critical = int(r.number())
			return 1 << 2
		case "unknown":
			c.Unknown = int(r.number())
			return 1 << 3
		default:
			return 0
		}
	})
}
