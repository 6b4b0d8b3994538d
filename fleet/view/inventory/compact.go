package inventory

import (
	"fmt"

	"github.com/musterfleet/muster/fleet/view/compact"
	"github.com/musterfleet/muster/model"
)

const (
	// maxManifests is how many manifests a node may say that it runs, maxGroups in how many groups
	// it is, maxLabels how many labels it has, maxRejected how many control documents it rejects:
	// whoever has more is none of muster.
	maxManifests = 2000
	maxGroups    = 1000
	maxLabels    = 1000
	maxRejected  = 100
	// maxReason is how many bytes are kept of an error or a message in the state of a node.
	maxReason = 2000
)

// compact returns a node in little memory, and takes it over. One that says too much about itself counts as one
// whose state cannot be read.
func (s *states) compact(n model.Node) model.Node {
	i := s.strings
	if problem := excess(n); problem != "" {
		n = model.Node{NodeState: model.NodeState{Node: n.Node}, Heard: n.Heard, Unreadable: problem}
	}
	n.Protocol, n.Node, n.Version, n.Event = i.Share(n.Protocol), i.Share(n.Node), i.Share(compact.Cut(n.Version, compact.MaxWord)), model.NodeEvent(i.Share(string(n.Event)))
	n.Host, n.Message, n.Unreadable = compact.Cut(n.Host, compact.MaxWord), compact.Cut(n.Message, maxReason), compact.Cut(n.Unreadable, maxReason)
	n.DroppedRanges = nil
	if n.Paused != nil {
		p := *n.Paused
		p.By, p.Reason, p.From = compact.Cut(p.By, compact.MaxWord), compact.Cut(p.Reason, maxReason), compact.Cut(p.From, compact.MaxWord)
		n.Paused = &p
	}
	n.Flapping = n.Flapping[:min(len(n.Flapping), model.MaxFlapping)]
	for at, g := range n.Groups {
		n.Groups[at] = i.Share(compact.Cut(g, compact.MaxWord))
	}
	for at, g := range n.UnreadGroups {
		n.UnreadGroups[at] = i.Share(compact.Cut(g, compact.MaxWord))
	}
	for key, value := range n.Labels {
		n.Labels[key] = i.Share(compact.Cut(value, maxReason))
	}
	for key, why := range n.RejectedControl {
		n.RejectedControl[key] = i.Share(compact.Cut(why, maxReason))
	}
	for key, m := range n.Manifests {
		m.Digest, m.Error, m.Late = compact.Cut(m.Digest, compact.MaxWord), compact.Cut(m.Error, maxReason), compact.Cut(m.Late, maxReason)
		if m.Ran != nil {
			ran := *m.Ran
			ran.Digest, ran.Outcome = i.Share(compact.Cut(ran.Digest, compact.MaxWord)), model.Outcome(i.Share(compact.Cut(string(ran.Outcome), compact.MaxWord)))
			m.Ran = &ran
		}
		n.Manifests[key] = m
	}

	return n
}

// excess returns of what a node has too much, empty for nothing.
func excess(n model.Node) string {
	for _, has := range []struct {
		what        string
		count, most int
	}{{"manifests", len(n.Manifests), maxManifests}, {"groups", len(n.Groups), maxGroups}, {"unread groups", len(n.UnreadGroups), maxGroups}, {"labels", len(n.Labels), maxLabels}, {"pauses", len(n.PausedBy), maxGroups + 1}, {"rejected control documents", len(n.RejectedControl), maxRejected}} {
		if has.count > has.most {
			return fmt.Sprintf("it has %d %s, more than the %d that are looked at", has.count, has.what, has.most)
		}
	}

	return ""
}
