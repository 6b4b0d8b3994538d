package fleetcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
)

// askTimeout is how long a node has to answer why its state is not stored.
const askTimeout = time.Second

// Unstored is what the server does not store.
type Unstored struct {
	// States and Reports are why states and reports are not stored, empty if they are.
	States, Reports string
	// Since is the time of the last stored state if enough nodes confirm that later ones are not stored.
	Since time.Time
	// Silent has the NATS servers that do not answer the others, with the time of the last answer.
	Silent map[string]time.Time
	// LastReport is the time of the last stored report.
	LastReport time.Time
}

// Lines returns the reasons.
func (u Unstored) Lines() []string {
	var out []string
	for _, server := range slices.Sorted(maps.Keys(u.Silent)) {
		out = append(out, SilentServer(server, u.Silent[server]))
	}
	for _, text := range []string{u.States, u.Reports} {
		if text != "" {
			out = append(out, text)
		}
	}

	return out
}

// SilentServer returns a problem: a NATS server that is silent since a time.
func SilentServer(name string, since time.Time) string {
	return fmt.Sprintf("the server %s does not answer the other NATS servers since %s: check whether it runs and its /healthz, and restart it if it hangs", name, since.Local().Format(model.TimeFormat))
}

// FindUnstored looks for states and reports that the server does not store. Only administrators can ask nodes for the
// reason.
func FindUnstored(ctx context.Context, s *kvstore.Store, nodes iter.Seq[*model.Node]) (out Unstored, err error) {
	names := s.Names()
	states, reports := kvstore.KVStream(names.Nodes()), names.Reports()
	if out.Silent, err = s.SilentServers(ctx); err != nil {
		return out, err
	}
	last, err := s.LastStored(ctx, states, reports)
	if err != nil {
		return out, err
	}
	out.LastReport = last[1].At
	out.Reports = fleet.UnstoredReports(fleet.LastStored(last[1]), nodes)
	suspicious := fleet.FindUnstoredStates(fleet.LastStored(last[0]), nodes)
	if !s.Places().InUse().IsOwn() {
		out.States = suspicious.Guess()
		return out, nil
	}
	said := 0
	for _, node := range suspicious.Ask {
		reason := askUnstored(ctx, s, node)
		if reason == "" {
			continue
		}
		if said++; said == suspicious.Witnesses {
			out.States, out.Since = suspicious.Reason(node, reason), last[0].At
			return out, nil
		}
	}
	if said > 0 {
		out.States = suspicious.Guess()
	}

	return out, nil
}

// Unstored returns what the server does not store of nodes, and the silent servers that no warning names yet. It
// returns nothing where that cannot be found out.
func (s *Store) Unstored(ctx context.Context, nodes []model.Node) Unstored {
	if s.KV.Away() != nil {
		return Unstored{}
	}
	found, err := FindUnstored(ctx, s.KV, func(yield func(*model.Node) bool) {
		for i := range nodes {
			if !yield(&nodes[i]) {
				return
			}
		}
	})
	if err != nil {
		s.log.Debug("cannot find out what NATS stores", "error", err)
	}
	maps.DeleteFunc(found.Silent, func(server string, _ time.Time) bool { return s.omitsNamed && !s.named.add(server) })

	return found
}

// askUnstored asks a node why its state is not stored; empty if it does not answer or its state is stored.
func askUnstored(ctx context.Context, s *kvstore.Store, node string) string {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for reply, err := range requests.New(s).Ask(ctx, s.Names().Request(kvstore.VerbPing, model.NodeFamily(node)), nil) {
		if err != nil || reply.Node != node {
			continue
		}
		var state model.NodeState
		_ = json.Unmarshal(reply.Data, &state) // an older agent answers otherwise

		return state.Unstored[model.UnstoredState]
	}

	return ""
}
