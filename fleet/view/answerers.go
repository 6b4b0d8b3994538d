package view

// maxAnswerers is how many nodes that answered are kept of all requests.
const maxAnswerers = 100_000

// answerers are the nodes that answered requests. They are kept besides their answers, because a node that floods
// loses its own answers, and with them who else answered.
type answerers struct {
	// of are the nodes by request, nil where they are not kept any more.
	of    map[*RequestRow]map[string]bool
	count int
}

// begin keeps those of a request.
func (a *answerers) begin(row *RequestRow) { a.of[row] = map[string]bool{} }

// add keeps a node that answered, and reports whether it is none that is kept.
func (a *answerers) add(row *RequestRow, node string) bool {
	all := a.of[row]
	if all[node] {
		return false
	}
	if all != nil {
		all[node] = true
		a.count++
	}

	return true
}

// clear gives up those of a request.
func (a *answerers) clear(row *RequestRow) {
	a.count -= len(a.of[row])
	a.of[row] = nil
}

// end is clear of a request that is not kept any more.
func (a *answerers) end(row *RequestRow) {
	a.clear(row)
	delete(a.of, row)
}
