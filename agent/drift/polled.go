package drift

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/resources/host/watch"
)

// maxNamed limits the resources that a log line names.
const maxNamed = 3

// unwatched is a resource that became polled and is not logged yet.
type unwatched struct {
	id    id
	cause error
}

// polling is the polling of a resource that cannot be watched.
type polling struct {
	// reason is nil for a watched resource.
	reason error
	every  time.Duration
	next   time.Time
}

// fallBack polls a resource from now on. The caller calls logUnwatched afterwards.
func (m *Monitor) fallBack(i id, f *follower, err error) {
	f.close()
	if f.polling.reason == nil {
		m.o.Log.Debug("resource polled, it cannot be watched", "manifest", i.key, "resource", i.String(), "every", f.polling.every, "error", err)
		m.unwatched = append(m.unwatched, unwatched{i, causeOf(err)})
	}
	f.polling.reason, f.polling.next = err, time.Now().Add(f.polling.every)
	m.polled[i] = f
}

// causeOf returns an error without its point.
func causeOf(err error) error {
	var at *watch.PointError
	if errors.As(err, &at) {
		return at.Err
	}

	return err
}

// logUnwatched logs the resources that became polled, in one line for each manifest and cause.
func (m *Monitor) logUnwatched() {
	slices.SortFunc(m.unwatched, func(a, b unwatched) int {
		return cmp.Or(cmp.Compare(a.id.key, b.id.key), cmp.Compare(a.cause.Error(), b.cause.Error()), a.id.compare(b.id))
	})
	for rest := m.unwatched; len(rest) > 0; {
		first := rest[0]
		count := 1
		for count < len(rest) && rest[count].id.key == first.id.key && rest[count].cause.Error() == first.cause.Error() {
			count++
		}
		m.o.Log.Warn("resources polled, they cannot be watched", "manifest", first.id.key, "count", count, "resources", namesOf(rest[:count]), "error", first.cause)
		rest = rest[count:]
	}
	m.unwatched = nil
}

// namesOf names the first resources of a list.
func namesOf(all []unwatched) string {
	var names []string
	for _, u := range all[:min(len(all), maxNamed)] {
		names = append(names, u.id.String())
	}
	if len(all) > maxNamed {
		names = append(names, "…")
	}

	return strings.Join(names, ", ")
}
