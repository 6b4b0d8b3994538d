package ask

import (
	"maps"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// Edit is a change of the labels or the groups of nodes.
type Edit struct {
	// Set maps names to values; groups have no values.
	Set    map[string]string
	Remove []string
	// Order replaces the order of groups if SetsOrder is true; an empty order resets it.
	Order     []string
	SetsOrder bool
}

// isIdle reports whether an edit only removes names that are not there.
func (e Edit) isIdle(has func(name string) bool) bool {
	return len(e.Set) == 0 && !slices.ContainsFunc(e.Remove, has)
}

// Names returns the sorted names that the edit sets.
func (e Edit) Names() []string { return slices.Sorted(maps.Keys(e.Set)) }

// DecodeGroups decodes signed or unsigned groups.
func DecodeGroups(value []byte) (model.Groups, error) {
	content, err := signed.Content(value)
	if err != nil {
		return model.Groups{}, err
	}

	return model.DecodeGroups(content)
}

// Groups returns the new document, with sorted groups, and reports whether it is the document before.
func (e Edit) Groups(before model.Groups) (model.Groups, bool) {
	now := slices.Concat(before.Groups, e.Names())
	now = slices.DeleteFunc(now, func(g string) bool { return slices.Contains(e.Remove, g) })
	slices.Sort(now)
	order := slices.DeleteFunc(slices.Clone(before.Order), func(g string) bool { return slices.Contains(e.Remove, g) })
	if e.SetsOrder {
		order = e.Order
	}

	return model.Groups{Protocol: model.ProtocolGroups, Groups: append([]string{}, slices.Compact(now)...), Order: order}, !e.SetsOrder && e.isIdle(func(name string) bool { return slices.Contains(before.Groups, name) })
}

// Left returns the groups of before that the edit removes.
func (e Edit) Left(before model.Groups) []string {
	return slices.DeleteFunc(slices.Clone(before.Groups), func(g string) bool { return !slices.Contains(e.Remove, g) })
}

// Kept returns the current groups that the edit does not add.
func (e Edit) Kept(now model.Groups) []string {
	return slices.DeleteFunc(slices.Clone(now.Groups), func(g string) bool {
		_, joined := e.Set[g]
		return joined
	})
}

// Labels returns the new document, and reports whether it is the document before.
func (e Edit) Labels(before model.Labels) (model.Labels, bool) {
	now := map[string]string{}
	maps.Copy(now, before.Labels)
	maps.Copy(now, e.Set)
	for _, name := range e.Remove {
		delete(now, name)
	}

	has := func(name string) bool { _, is := before.Labels[name]; return is }

	return model.Labels{Protocol: model.ProtocolLabels, Labels: now}, e.isIdle(has)
}
