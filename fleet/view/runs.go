package view

// runID tells runs apart; nodes choose their ids.
type runID struct{ node, id string }

// runs are the newest runs, by the places of their summaries.
type runs struct {
	*bounded[*RunRow]
	byID map[runID]*RunRow
	// parts are the places of those of which only a transaction is known.
	parts map[runID]place
}

func newRuns(most int) runs {
	r := runs{newBounded[*RunRow](most), map[runID]*RunRow{}, map[runID]place{}}
	r.dropped = func(it *item[*RunRow]) {
		id := runID{it.node, it.value.RunID}
		delete(r.byID, id)
		delete(r.parts, id)
	}

	return r
}

// summary takes the summary of a run.
func (r runs) summary(at place, row RunRow) {
	id := runID{row.Node, row.RunID}
	if before, is := r.parts[id]; is {
		r.remove(&item[*RunRow]{place: before, node: row.Node})
		delete(r.parts, id)
		delete(r.byID, id)
	}
	if r.byID[id] == nil { // a node reports a run once
		r.byID[id] = &row
		r.put(row.Node, at, &row)
	}
}

// part takes a transaction of a run, whose summary may come later.
func (r runs) part(at place, e *Event) {
	id := runID{e.Node, e.RunID}
	if r.byID[id] == nil {
		row := &RunRow{RunID: e.RunID, Node: e.Node, Manifest: e.Manifest, Cause: e.Cause, Started: e.Time}
		r.byID[id], r.parts[id] = row, at
		r.put(e.Node, at, row)
	}
}
