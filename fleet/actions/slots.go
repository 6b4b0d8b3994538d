package actions

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

const (
	// maxRunning is how many actions go on at the same time, maxOwn how many of them are of one name.
	maxRunning = 4
	maxOwn     = 2
	// maxTarget is how many bytes of a target are in the reason why there is no place.
	maxTarget = 80
)

// slots bound how many actions go on at the same time, and of those how many are of one name.
type slots struct {
	mu sync.Mutex
	// taken are the actions that have one, by id.
	taken map[string]Action
}

func newSlots() *slots { return &slots{taken: map[string]Action{}} }

// take takes a slot for an action. The error wraps ErrBusy where none is free, and says which have them.
func (s *slots) take(a Action) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.SortedFunc(maps.Values(s.taken), func(a, b Action) int { return cmp.Or(a.Begun.Compare(b.Begun), strings.Compare(a.ID, b.ID)) })
	own := slices.DeleteFunc(slices.Clone(all), func(other Action) bool { return other.By != a.By })
	switch {
	case len(own) >= maxOwn:
		return fmt.Errorf("%w: %d of %s are in progress (%s), which is the most for one name: wait for one, or cancel it", ErrBusy, len(own), a.By, inProgress(own))
	case len(all) >= maxRunning:
		return fmt.Errorf("%w: %d are in progress (%s), which is the most: wait for one, or cancel it", ErrBusy, len(all), inProgress(all))
	}
	s.taken[a.ID] = a

	return nil
}

// inProgress names actions: what, of whom, by whom and since when.
func inProgress(all []Action) string {
	out := make([]string, len(all))
	for i, a := range all {
		target := a.Target.String()
		if len(target) > maxTarget {
			target = strings.ToValidUTF8(target[:maxTarget], "") + " …"
		}
		out[i] = fmt.Sprintf("%s of %s by %s since %s", a.Kind, target, a.By, a.Begun.UTC().Format("15:04:05 MST"))
	}

	return strings.Join(out, "; ")
}

// free gives the slot of an action back.
func (s *slots) free(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.taken, id)
}
