package view

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/google/btree"
)

// position is a position in the stream: the sequence number of a message and an index in it.
type position struct {
	seq  uint64
	part int
}

func (p position) compare(o position) int {
	return cmp.Or(cmp.Compare(p.seq, o.seq), cmp.Compare(p.part, o.part))
}

type item[T any] struct {
	position
	value T
	// retired means that it is retained only as one of the last entries of its node.
	retired bool
	// siblings are the entries of its node.
	siblings *siblings[T]
}

type siblings[T any] struct {
	node  string
	items []*item[T]
}

// bounded retains the newest entries of nodes by place, in any order of arrival. If there are too many, nodes
// with more than their share lose their oldest entries first, so a flooding node displaces no entries of
// other nodes. The last few entries of a known node always stay.
type bounded[T any] struct {
	most, share int
	all         *btree.BTreeG[*item[T]]
	byNode      map[string]*siblings[T]
	// over are the entries of nodes with more than their share.
	over map[*siblings[T]]bool
	// isKnown reports whether the last few entries of a node stay.
	isKnown func(node string) bool
	// dropped is called for each removed entry.
	dropped func(*item[T])
}

const (
	// shares is the number of nodes that can use their full share.
	nodeShares = 100
	// lastFew is the number of entries that stay with a known node.
	lastFew = 3
)

func newBounded[T any](most int) *bounded[T] {
	const degree = 32

	return &bounded[T]{
		most: most, share: max(most/nodeShares, lastFew), all: btree.NewG(degree, func(a, b *item[T]) bool { return a.compare(b.position) < 0 }),
		byNode: map[string]*siblings[T]{}, over: map[*siblings[T]]bool{}, isKnown: func(string) bool { return false }, dropped: func(*item[T]) {},
	}
}

// newItem returns an entry of a node at an unused place, for put.
func (b *bounded[T]) newItem(node string, at position, value T) *item[T] {
	own := b.byNode[node]
	if own == nil {
		own = &siblings[T]{node: strings.Clone(node)}
		b.byNode[own.node] = own
	}

	return &item[T]{position: at, value: value, siblings: own}
}

// put adds a new entry. It drops the entry immediately if the list is full of newer ones.
func (b *bounded[T]) put(it *item[T]) {
	own := it.siblings
	b.all.ReplaceOrInsert(it)
	i, _ := own.find(it.position)
	if own.items = slices.Insert(own.items, i, it); len(own.items) > b.share {
		b.over[own] = true
	}
	for len(own.items) > lastFew && own.items[0].retired {
		b.drop(own.items[0])
	}
	for b.all.Len() > b.most {
		b.giveUp(b.oldest())
	}
}

func (b *bounded[T]) oldest() *item[T] {
	var out *item[T]
	for own := range b.over {
		if first := own.items[0]; out == nil || first.compare(out.position) < 0 {
			out = first
		}
	}
	if out == nil {
		out, _ = b.all.Min()
	}

	return out
}

// giveUp removes an entry, or retires it to its node.
func (b *bounded[T]) giveUp(it *item[T]) {
	if len(it.siblings.items) > lastFew || !b.isKnown(it.siblings.node) {
		b.drop(it)
		return
	}
	b.all.Delete(it)
	it.retired = true
}

// forget removes the entries of an unknown node.
func (b *bounded[T]) forget(node string) {
	for own := b.byNode[node]; own != nil && len(own.items) > 0 && own.items[0].retired; {
		b.drop(own.items[0])
	}
}

func (b *bounded[T]) drop(it *item[T]) {
	b.remove(it)
	b.dropped(it)
}

func (b *bounded[T]) remove(it *item[T]) {
	b.all.Delete(it)
	own := it.siblings
	if i, found := own.find(it.position); found {
		own.items = slices.Delete(own.items, i, i+1)
	}
	if len(own.items) <= b.share {
		delete(b.over, own)
	}
	if len(own.items) == 0 {
		delete(b.byNode, own.node)
	}
}

// newest yields the entries, newest first, before a sequence number unless it is 0.
func (b *bounded[T]) newest(before uint64, yield func(*item[T]) bool) {
	if before == 0 {
		b.all.Descend(yield)
		return
	}
	b.all.DescendLessOrEqual(&item[T]{position: position{before, -1}}, yield)
}

// after yields the entries after a sequence number, oldest first.
func (b *bounded[T]) after(seq uint64, yield func(*item[T]) bool) {
	b.all.AscendGreaterOrEqual(&item[T]{position: position{seq + 1, 0}}, yield)
}

func (b *bounded[T]) of(node string, most int) iter.Seq2[int, *item[T]] {
	var own []*item[T]
	if all := b.byNode[node]; all != nil {
		own = all.items[max(len(all.items)-most, 0):]
	}

	return slices.Backward(own)
}

func (s *siblings[T]) find(at position) (int, bool) {
	return slices.BinarySearchFunc(s.items, at, func(it *item[T], at position) int { return it.compare(at) })
}
