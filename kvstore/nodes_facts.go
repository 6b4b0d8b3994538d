package kvstore

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/musterfleet/muster/model"
)

// fewNodes is the largest number of nodes whose documents are read one by one.
const fewNodes = 50

// maxUnreadableReason limits the size in bytes of a reason that contains text from a node.
const maxUnreadableReason = 200

// Facts yields the facts of some nodes, in any order. It skips nodes without stored facts. It may yield a node again if the
// node stores its facts during the read. An error is the last item.
func (b Nodes) Facts(ctx context.Context, nodes []string) iter.Seq2[model.NodeFacts, error] {
	return nodeDocuments[model.NodeFacts]{
		subject: Names.NodeFacts, decode: decodeFacts,
		unreadable: func(node, reason string) model.NodeFacts { return model.NodeFacts{Node: node, Unreadable: reason} },
	}.read(ctx, b, nodes)
}

// nodeDocuments reads one kind of document of nodes.
type nodeDocuments[D any] struct {
	subject    func(n Names, node string) string
	decode     func(node string, m Message) D
	unreadable func(node, reason string) D
}

// read yields the documents of some nodes, see Facts.
func (d nodeDocuments[D]) read(ctx context.Context, b Nodes, nodes []string) iter.Seq2[D, error] {
	if len(nodes) <= fewNodes {
		return d.readEach(ctx, b, nodes)
	}
	names := map[string]bool{}
	for _, n := range nodes {
		names[n] = true
	}

	return func(yield func(D, error) bool) {
		n := b.store.Names()
		for m, err := range scanDirect(ctx, b.store, b.stream(), d.subject(n, "*"), statePage) {
			if err != nil {
				yield(*new(D), err)
				return
			}
			node := stateNode(n, m.Subject)
			if !names[node] || m.Deleted() && !m.Forged {
				continue
			}
			if !yield(d.decode(node, m), nil) {
				return
			}
		}
	}
}

// readEach yields the documents of some nodes with one request per node.
func (d nodeDocuments[D]) readEach(ctx context.Context, b Nodes, nodes []string) iter.Seq2[D, error] {
	return func(yield func(D, error) bool) {
		for _, node := range nodes {
			m, err := b.store.Last(ctx, b.stream(), d.subject(b.store.Names(), node))
			var doc D
			switch {
			case errors.Is(err, model.ErrNotFound), err == nil && m.Deleted() && !m.Forged:
				continue
			case errors.Is(err, ErrUnreadable):
				doc = d.unreadable(node, err.Error())
			case err != nil:
				yield(doc, err)
				return
			default:
				doc = d.decode(node, m)
			}
			if !yield(doc, nil) {
				return
			}
		}
	}
}

// decodeFacts reads the facts of a node.
func decodeFacts(node string, m Message) model.NodeFacts {
	f := model.NodeFacts{Node: node}
	err := m.Refusal()
	if err == nil {
		err = json.Unmarshal(m.Data, &f.Facts)
	}
	if err != nil {
		return model.NodeFacts{Node: node, Unreadable: model.Line(err.Error(), maxUnreadableReason)}
	}

	return f
}
