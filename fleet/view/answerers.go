package view

// maxAnswerers limits the remembered answering nodes of all requests.
const maxAnswerers = 100_000

// answerers are the nodes that answered requests. They are stored separately from the answers, because a
// flooding node loses its own answers.
type answerers struct {
	// of are the nodes by request, nil if they are not remembered any more.
	of    map[*RequestRow]map[string]bool
	count int
}

// begin starts remembering the nodes of a request.
func (a *answerers) begin(row *RequestRow) { a.of[row] = map[string]bool{} }

// add records a node that answered, and reports whether it is new.
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

// clear forgets the nodes of a request.
func (a *answerers) clear(row *RequestRow) {
	a.count -= len(a.of[row])
	a.of[row] = nil
}

// end forgets a request that is no longer retained.
func (a *answerers) end(row *RequestRow) {
	a.clear(row)
	delete(a.of, row)
}
