package page

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/fleet/view"
)

// How many facts are shown, and how deep.
const (
	maxFacts = 2000
	maxDepth = 40
)

// fact is a value of the facts of a node, at the name that target expressions have for it.
type fact struct{ path, value string }

// factGroup are the facts below one name.
type factGroup struct {
	name  string
	facts []fact
}

// factList is the facts of a node that are shown.
type factList struct {
	groups []factGroup
	shown  int
	more   int
}

// FactsData is what the page of the facts of a node shows.
type FactsData struct {
	Node     string
	Progress view.Progress
	Facts    json.RawMessage
	Search   string
	// Problem is why they cannot be read, empty where they can.
	Problem string
}

// list returns the facts whose names or values have the text that is searched.
func (d FactsData) list() (factList, error) {
	var all any
	r := json.NewDecoder(bytes.NewReader(d.Facts))
	r.UseNumber()
	if err := r.Decode(&all); err != nil {
		return factList{}, err
	}
	var out factList
	search := strings.ToLower(d.Search)
	top, _ := all.(map[string]any)
	for _, name := range factOrder(top) {
		g := factGroup{name: Row(name)}
		walk("facts"+member(name), top[name], 0, func(path, value string) {
			switch {
			case search != "" && !strings.Contains(strings.ToLower(path), search) && !strings.Contains(strings.ToLower(value), search):
			case out.shown == maxFacts:
				out.more++
			default:
				g.facts, out.shown = append(g.facts, fact{Cut(path, MaxRow), Cut(value, MaxRow)}), out.shown+1
			}
		})
		if len(g.facts) > 0 {
			out.groups = append(out.groups, g)
		}
	}

	return out, nil
}

// factOrder returns the names of fact groups: first the most used groups, then the others by name.
func factOrder(top map[string]any) []string {
	first := []string{"host", "network", "cpu", "memory", "partition"}
	rank := func(name string) int {
		if i := slices.Index(first, name); i >= 0 {
			return i
		}
		return len(first)
	}
	names := slices.Sorted(maps.Keys(top))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })

	return names
}

// walk calls a function with each scalar of a value, and its path.
func walk(path string, v any, depth int, each func(path, value string)) {
	switch v := v.(type) {
	case map[string]any:
		if depth == maxDepth || len(v) == 0 {
			each(path, fmt.Sprintf("{%s}", Count(len(v), "entry")))
			return
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			walk(path+member(name), v[name], depth+1, each)
		}
	case []any:
		if depth == maxDepth || len(v) == 0 {
			each(path, fmt.Sprintf("[%s]", Count(len(v), "entry")))
			return
		}
		for i, e := range v {
			walk(path+"["+strconv.Itoa(i)+"]", e, depth+1, each)
		}
	case string:
		each(path, strconv.Quote(Cut(v, MaxRow)))
	case nil:
		each(path, "nil")
	default:
		each(path, fmt.Sprint(v))
	}
}

// member returns how an expression names a member of a mapping.
func member(name string) string {
	for i, r := range name {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return "[" + strconv.Quote(Cut(name, MaxRow)) + "]"
		}
	}

	return "." + Cut(name, MaxRow)
}
