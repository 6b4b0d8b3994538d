package view

// runID tells runs apart; nodes choose their ids.
type runID struct{ node, id string }

// runs are the newest runs, by the places of their summaries. A row without an outcome is at the place of a
// transaction: its summary is not known.
type runs struct {
	*bounded[*RunRow]
	byID map[runID]*item[*RunRow]
}

func newRuns(most int) runs {
	r := runs{newBounded[*RunRow](most), map[runID]*item[*RunRow]{}}
	r.dropped = func(it *item[*RunRow]) { delete(r.byID, runID{it.node, it.value.RunID}) }

	return r
}

// summary takes the summary of a run.
func (r runs) summary(at place, row RunRow) {
	id := runID{row.Node, row.RunID}
	known := r.byID[id]
	switch {
	case known == nil:
	case known.value.Outcome == "":
		r.remove(known)
	default:
		return // a node reports a run once
	}
	r.add(id, at, &row)
}

// part takes a transaction of a run, whose summary may come later.
func (r runs) part(at place, e *Event) {
	id := runID{e.Node, e.RunID}
	if r.byID[id] == nil {
		r.add(id, at, &RunRow{RunID: e.RunID, Node: e.Node, Manifest: e.Manifest, Cause: e.Cause, Started: e.Time})
	}
}

func (r runs) add(id runID, at place, row *RunRow) {
	it := &item[*RunRow]{place: at, node: row.Node, value: row}
	r.byID[id] = it
	r.put(it)
}
