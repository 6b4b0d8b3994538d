package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

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
	return documents(ctx, b, nodes, kvstore.Names.NodeFacts, decodeFacts, func(node, reason string) model.NodeFacts {
		return model.NodeFacts{Node: node, Unreadable: reason}
	})
}

// documents yields a kind of document of some nodes.
func documents[D any](ctx context.Context, b Bucket, nodes []string, subject func(kvstore.Names, string) string, decode func(node string, m kvstore.Message) D, unreadable func(node, reason string) D) iter.Seq2[D, error] {
	if len(nodes) <= fewNodes {
		return documentsOfEach(ctx, b, nodes, subject, decode, unreadable)
	}
	names := map[string]bool{}
	for _, n := range nodes {
		names[n] = true
	}

	return func(yield func(D, error) bool) {
		n := b.store.Names()
		for m, err := range b.boundOfFacts().Of(scan.Direct(ctx, b.store, b.stream(), subject(n, "*"), pageSize)) {
			if err != nil {
				yield(*new(D), err)
				return
			}
			node := nodeOf(n, m.Subject)
			if !names[node] || m.Deleted() && !m.Forged {
				continue
			}
			if !yield(decode(node, m), nil) {
				return
			}
		}
	}
}

// documentsOfEach is documents with a request for each node.
func documentsOfEach[D any](ctx context.Context, b Bucket, nodes []string, subject func(kvstore.Names, string) string, decode func(node string, m kvstore.Message) D, unreadable func(node, reason string) D) iter.Seq2[D, error] {
	return func(yield func(D, error) bool) {
		for _, node := range nodes {
			m, err := b.store.Last(ctx, b.stream(), subject(b.store.Names(), node))
			var d D
			switch {
			case errors.Is(err, model.ErrNotFound), err == nil && m.Deleted() && !m.Forged:
				continue
			case errors.Is(err, answer.ErrUnreadable):
				d = unreadable(node, err.Error())
			case err != nil:
				yield(d, err)
				return
			default:
				d = decode(node, m)
			}
			if !yield(d, nil) {
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
