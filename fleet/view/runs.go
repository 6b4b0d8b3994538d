package view

import "hash/maphash"

// runs are the newest runs, by the places of their summaries. A row without an outcome is at the place of a
// transaction: its summary is not known.
type runs struct {
	*bounded[runRow]
	// byID has them by hashes of node and id that no node can foresee.
	byID map[uint64]*item[runRow]
	seed maphash.Seed
}

func newRuns(most int) runs {
	r := runs{newBounded[runRow](most), map[uint64]*item[runRow]{}, maphash.MakeSeed()}
	r.dropped = func(it *item[runRow]) { delete(r.byID, hashOf(r.seed, it.siblings.node, it.value.id)) }

	return r
}

// summary takes the summary of a run.
func (r runs) summary(node string, at position, row runRow) {
	id := hashOf(r.seed, node, row.id)
	known := r.byID[id]
	switch {
	case known == nil:
	case known.value.outcome == "":
		r.remove(known)
	default:
		return // a node reports a run once
	}
	r.add(id, r.newItem(node, at, row))
}

// part takes a transaction of a run, whose summary may come later.
func (r runs) part(node string, at position, row runRow) {
	if id := hashOf(r.seed, node, row.id); r.byID[id] == nil {
		r.add(id, r.newItem(node, at, row))
	}
}

// add keeps a run. It is found by its id before: there may be no room for it.
func (r runs) add(id uint64, it *item[runRow]) {
	r.byID[id] = it
	r.put(it)
}
