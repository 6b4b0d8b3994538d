package view

import "github.com/musterfleet/muster/model"

// merge adds the counts of later nodes.
func (c *counter) merge(o *counter) {
	c.nodes += o.nodes
	c.unreadable += o.unreadable
	mergeMaps(c.byStatus, o.byStatus, func(a, b *State) {
		a.Since = model.EarlierNonZero(a.Since, b.Since)
		for state, count := range b.Otherwise {
			a.Otherwise[state] += count // both have one state
		}
		a.merge(b.Members)
	})
	mergeMaps(c.failures, o.failures, func(a, b *failingNodes) {
		a.claims = append(a.claims, b.claims...)
		a.More += b.More
		a.merge(b.Members)
	})
	mergeMaps(c.flapping, o.flapping, func(a, b *Flapping) { a.merge(b.Members) })
	mergeMaps(c.versions, o.versions, func(a, b *Version) { a.merge(b.Members) })
	mergeMaps(c.lost, o.lost, func(a, b *Lost) { a.Revision = max(a.Revision, b.Revision); a.merge(b.Members) })
	c.unchecked += o.unchecked
	for i := range o.manifests {
		c.manifests[i].merge(&o.manifests[i])
	}
	c.clocks = append(c.clocks, o.clocks...)
	c.outboxes = append(c.outboxes, o.outboxes...)
	c.messages = append(c.messages, o.messages...)
}

// mergeMaps adds the entries of one map to the entries of another map with the same name.
func mergeMaps[K comparable, V any](to, from map[K]*V, add func(to, from *V)) {
	for k, v := range from {
		if known := to[k]; known != nil {
			add(known, v)
		} else {
			to[k] = v
		}
	}
}

// merge adds later nodes.
func (m *Members) merge(o Members) {
	m.Nodes += o.Nodes
	m.First = append(m.First, o.First[:min(len(o.First), max(0, maxFirst-len(m.First)))]...)
	m.last = o.last
}

// merge adds the counts of nodes that are behind these.
func (m *Manifest) merge(o *Manifest) {
	m.AddAll(o.Tally)
	m.Noop += o.Noop
	if o.Oldest != nil && (m.Oldest == nil || o.Oldest.isBefore(m.Oldest)) {
		m.Oldest = o.Oldest
	}
}
