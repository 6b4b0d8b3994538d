package page

import (
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/musterfleet/muster/fleet"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/page/texts"
)

// concern is something of a fleet that needs attention.
type concern struct {
	look
	what, why string
	url       templ.SafeURL
	// nodes are the first of those that are concerned, of all.
	nodes []string
	all   int
	// since is when it began on the first of them, zero where nobody knows.
	since time.Time
}

// maxConcerns is how many of a kind are named: the pages they lead to have all.
const maxConcerns = 5

// concernsOf returns what needs attention, what is most serious first.
func concernsOf(o view.Overview) []concern {
	var out []concern
	out = append(out, failures(o.Failing, fleet.StatusFailed)...)
	out = append(out, failures(o.Failing, fleet.StatusRejected)...)
	out = append(out, pending(o.Manifests)...)
	for _, s := range o.States {
		if s.State == fleet.StatusUnreachable || s.State == fleet.StatusUnreadable {
			out = append(out, concern{look: ofStatus(s.State), what: texts.Count(s.Nodes, "node") + " " + texts.IsAre(s.Nodes) + " " + string(s.State), why: whyAbsent(s.State, s.Nodes), url: stateURL(s.State), nodes: s.First, all: s.Nodes, since: s.Since})
		}
	}
	if len(o.Lost) > 0 {
		out = append(out, lost(o.Summary))
	}
	if n := len(o.Messages); n > 0 {
		m := o.Messages[0]
		out = append(out, concern{look: look{"warning", "wait", "Message"}, what: texts.Count(n, "node") + saysOf(n), why: m.Node + ": " + texts.Row(m.Message), url: NodeURL(m.Node), nodes: nodesOf(o.Messages, func(m view.Message) string { return m.Node }), all: n})
	}
	for _, f := range o.Flapping[:min(len(o.Flapping), maxConcerns)] {
		out = append(out, concern{look: look{"wave", "wait", "Flapping"}, what: texts.Row(f.Resource) + " flaps", why: "of " + texts.Row(f.Manifest) + ", " + texts.Row(f.By), url: manifestURL(f.Manifest), nodes: f.First, all: f.Nodes})
	}
	if n := len(o.Clocks); n > 0 {
		c := o.Clocks[0]
		out = append(out, concern{look: look{"audit", "wait", "Clock"}, what: texts.Count(n, "clock") + differ(n), why: "furthest off: " + c.Node + ", " + c.ClockOffset.String(), url: NodeURL(c.Node), nodes: nodesOf(o.Clocks, func(c view.Clock) string { return c.Node }), all: n})
	}
	if n := len(o.Outboxes); n > 0 {
		b := o.Outboxes[0]
		out = append(out, concern{look: look{"outbox", "wait", "Outbox"}, what: "Reports wait on " + texts.Count(n, "node"), why: "most of them, " + texts.Number(b.Reports) + ", on " + b.Node, url: NodeURL(b.Node), nodes: nodesOf(o.Outboxes, func(b view.Outbox) string { return b.Node }), all: n})
	}

	return out
}

// lost names the first manifests that have lost their keys, and the remedy.
func lost(s view.Summary) concern {
	var keys []string
	for _, l := range s.Lost[:min(len(s.Lost), maxConcerns)] {
		keys = append(keys, texts.Row(l.Key)+" still runs on "+texts.Count(l.Nodes, "node"))
	}
	if more := len(s.Lost) - maxConcerns; more > 0 {
		keys = append(keys, "and "+texts.Count(more, "more manifest"))
	}
	first := s.Lost[0]

	return concern{look: look{"warning", "wait", "Lost key"}, what: s.LostTitle(), why: strings.Join(keys, ", ") + "; " + s.LostRemedy("muster fleet rm KEY"), url: manifestURL(first.Key), nodes: first.First, all: first.Nodes}
}

func failures(all []view.Failure, status fleet.Status) []concern {
	var out []concern
	more, nodes := 0, 0
	for _, f := range all {
		if f.Status != status {
			continue
		}
		if len(out) == maxConcerns {
			more, nodes = more+1, nodes+f.Nodes
			continue
		}
		out = append(out, concern{look: ofStatus(status), what: texts.Row(f.Manifest) + " " + statusWord(status) + " on " + texts.Count(f.Nodes, "node"), why: texts.Row(messageFirst(f.Error)) + f.Differs(), url: manifestStatusURL(f.Manifest, status), nodes: f.First, all: f.Nodes, since: f.Since})
	}
	if more > 0 {
		out = append(out, concern{look: ofStatus(status), what: texts.Count(more, "more error"), why: "on " + texts.Count(nodes, "node") + " at most, which may be among those above", url: stateURL(status)})
	}

	return out
}

func statusWord(s fleet.Status) string { return strings.ToLower(ofStatus(s).word) }

// pending names the manifests that nodes do not run yet, each with its oldest node, and why.
func pending(all []view.Manifest) []concern {
	var out []concern
	for _, m := range all {
		if m.Oldest == nil || len(out) == maxConcerns {
			continue
		}
		out = append(out, concern{
			look: ofStatus(fleet.StatusPending), what: texts.Row(m.Name) + " pending on " + texts.Count(m.Pending, "node"), why: "longest on " + m.Oldest.Node + ": " + texts.Row(m.Oldest.Reason),
			url: manifestStatusURL(m.Name, fleet.StatusPending), nodes: []string{m.Oldest.Node}, all: m.Pending, since: m.Oldest.Since,
		})
	}

	return out
}

// whyAbsent says what is wrong with so many nodes of a state.
func whyAbsent(s fleet.Status, n int) string {
	switch {
	case s == fleet.StatusUnreadable && n == 1:
		return "what it reports cannot be read by this version of muster"
	case s == fleet.StatusUnreadable:
		return "what they report cannot be read by this version of muster"
	case n == 1:
		return "not seen lately; is its agent running, and connected to NATS?"
	default:
		return "not seen lately; are their agents running, and connected to NATS?"
	}
}

// nodesWere is nodesAre for the last known state.
func nodesWere(all int) string {
	if all == 1 {
		return "node was"
	}

	return "nodes were"
}

// nodesAre is behind "3 of 5".
func nodesAre(all int) string {
	if all == 1 {
		return "node is"
	}

	return "nodes are"
}

func nodesOf[T any](all []T, name func(T) string) []string {
	var out []string
	for _, v := range all[:min(len(all), 10)] {
		out = append(out, name(v))
	}

	return out
}

// saysOf is behind "1 node", of messages.
func saysOf(n int) string {
	if n == 1 {
		return " says that something is wrong with it"
	}

	return " say that something is wrong with them"
}

func differ(n int) string {
	if n == 1 {
		return " differs"
	}

	return " differ"
}

// okOf returns the number of nodes in state ok.
func okOf(states []view.State) int {
	for _, s := range states {
		if s.State == fleet.StatusOK {
			return s.Nodes
		}
	}

	return 0
}

// ofStates returns the parts of the bar of a fleet.
func ofStates(states []view.State) []share {
	var out []share
	for _, s := range states {
		out = append(out, share{ofStatus(s.State), s.Nodes})
	}

	return out
}

// unread returns what is not known yet, in sentences; none where everything is.
func unread(p view.Progress) []string {
	var out []string
	switch {
	case !p.Nodes:
		out = append(out, "The nodes are still being read: counts and lists are incomplete.")
	case !p.LastRuns:
		out = append(out, "The last runs are still being read: some nodes do not show theirs yet.")
	case !p.History:
		out = append(out, "The history is still being read: charts and lists of events are incomplete.")
	}

	return out
}

// isPartial reports whether a notice at the top of the overview says that the states may be incomplete or outdated.
func isPartial(o view.Overview) bool {
	return len(unread(o.Progress)) > 0 || len(o.Progress.Problems) > 0 || !o.Progress.BlindSince.IsZero() || len(o.Incomplete) > 0
}
