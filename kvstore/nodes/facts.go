package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/answer"
	"github.com/musterfleet/muster/kvstore/scan"
	"github.com/musterfleet/muster/model"
)

// fewNodes is up to how many nodes are read one by one, and not among all others.
const fewNodes = 50

// Facts yields the facts of some nodes, in any order, and none for a node that has
// stored none. Those that a node stores meanwhile may follow. An error is the last
// thing.
func (b Bucket) Facts(ctx context.Context, nodes []string) iter.Seq2[model.NodeFacts, error] {
	if len(nodes) <= fewNodes {
		return b.factsOfEach(ctx, nodes)
	}
	names := map[string]bool{}
	for _, n := range nodes {
		names[n] = true
	}

	return func(yield func(model.NodeFacts, error) bool) {
		n := b.store.Names()
		for m, err := range b.boundOfFacts().Of(scan.Direct(ctx, b.store, b.stream(), n.NodeFacts("*"), pageSize)) {
			node, _, _ := strings.Cut(strings.TrimPrefix(m.Subject, kvstore.KVSubject(n.Nodes(), "")), ".")
			switch {
			case err != nil:
				yield(model.NodeFacts{}, err)
				return
			case !names[node] || m.Deleted() && !m.Forged:
				continue
			}
			if !yield(decodeFacts(node, m), nil) {
				return
			}
		}
	}
}

func (b Bucket) factsOfEach(ctx context.Context, nodes []string) iter.Seq2[model.NodeFacts, error] {
	return func(yield func(model.NodeFacts, error) bool) {
		for _, node := range nodes {
			m, err := b.store.Last(ctx, b.stream(), b.store.Names().NodeFacts(node))
			f := model.NodeFacts{Node: node}
			switch {
			case errors.Is(err, model.ErrNotFound), err == nil && m.Deleted() && !m.Forged:
				continue
			case errors.Is(err, answer.ErrUnreadable):
				f.Unreadable = err.Error()
			case err != nil:
				yield(model.NodeFacts{}, err)
				return
			default:
				f = decodeFacts(node, m)
			}
			if !yield(f, nil) {
				return
			}
		}
	}
}

// decodeFacts reads the facts of a node.
func decodeFacts(node string, m kvstore.Message) model.NodeFacts {
	f := model.NodeFacts{Node: node}
	err := m.Refusal()
	if err == nil {
		err = json.Unmarshal(m.Data, &f.Facts)
	}
	if err != nil {
		return model.NodeFacts{Node: node, Unreadable: err.Error()}
	}

	return f
}
