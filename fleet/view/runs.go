package view

import "hash/maphash"

// runs are the newest runs, by the places of their summaries. A row without an outcome has the place of a
// transaction, because its summary is unknown.
type runs struct {
	*bounded[runRow]
	// byID contains the runs by hashes of node and id that no node can predict.
	byID map[uint64]*item[runRow]
	seed maphash.Seed
}

func newRuns(most int) runs {
	r := runs{newBounded[runRow](most), map[uint64]*item[runRow]{}, maphash.MakeSeed()}
	r.dropped = func(it *item[runRow]) { delete(r.byID, hashOf(r.seed, it.siblings.node, it.value.id)) }

	return r
}

// summary adds the summary of a run.
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

// part adds a transaction of a run. The summary may arrive later.
func (r runs) part(node string, at position, row runRow) {
	if id := hashOf(r.seed, node, row.id); r.byID[id] == nil {
		r.add(id, r.newItem(node, at, row))
	}
}

// add adds a run. It registers the id first, because the run may be dropped immediately.
func (r runs) add(id uint64, it *item[runRow]) {
	r.byID[id] = it
	r.put(it)
}
