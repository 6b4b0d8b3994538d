package fleetcmd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// Limits for the screen; --json and --yaml print everything.
const (
	maxManifests = 12
	maxCellLines = 5
	maxNamed     = 3
	maxWord      = 40
	maxLine      = 2000
)

// screen prints summaries.
type screen struct {
	print.Printer
	names kvstore.Names
	// whole disables cutting lines at the width of the terminal.
	whole bool
}

// line prints a line of untrusted text with a name in front. An empty name continues the previous line.
func (p screen) line(name, format string, args ...any) {
	text := print.Cut(print.Text(fmt.Sprintf(format, args...)), maxLine)
	if !p.whole {
		text = p.Short(text)
	}
	p.Printf("%-10s %s\n", name, print.OneLine(text))
}

// show prints the overview of a fleet.
func (p screen) show(s view.Summary) {
	if s.Total == 0 {
		p.Remark("no known nodes; nodes run muster agent run")
	}
	p.line("nodes", "%s", states(s))
	for _, text := range s.Incomplete {
		p.line("incomplete", "%s", text)
	}
	p.Printf("\n")
	p.manifests(s)
	p.Printf("\n")
	most(p, "failing", len(s.Failing), func(i int) string {
		f := s.Failing[i]
		return fmt.Sprintf("%s on %s%s: %s: %s", f.Status, members(f.Members), f.Differs(), f.Manifest, f.Error)
	})
	most(p, "flapping", len(s.Flapping), func(i int) string {
		f := s.Flapping[i]
		return fmt.Sprintf("on %s: %s of %s, %s", members(f.Members), f.Resource, f.Manifest, f.By)
	})
	p.lost(s)
	several(p, "message", s.Messages, func(m view.Message) string { return m.Node + ": " + m.Message })
	several(p, "clock", s.Clocks, func(c view.Clock) string { return c.Node + " is " + c.String() })
	several(p, "outbox", s.Outboxes, func(o view.Outbox) string { return fmt.Sprintf("%s: %d", o.Node, o.Reports) })
	most(p, "version", len(s.Versions), func(i int) string { return versionText(s.Versions[i]) })
	for _, command := range next(s) {
		p.line("next", "%s", p.names.Run(command))
	}
}

// lost prints the manifests that run without their keys, and the remedy.
func (p screen) lost(s view.Summary) {
	if len(s.Lost) == 0 {
		return
	}
	p.line("lost", "%s; %s", s.LostTitle(), s.LostRemedy(p.names.Run("fleet rm KEY")))
	most(p, "", len(s.Lost), func(i int) string { return s.Lost[i].Key + " runs on " + members(s.Lost[i].Members) })
	if s.LostUnchecked > 0 {
		p.line("", "not checked: %s", print.Count(s.LostUnchecked, "more unassigned manifest"))
	}
}

// states formats the numbers of nodes by state.
func states(s view.Summary) string {
	text := strconv.Itoa(s.Total)
	for i, state := range s.States {
		text += map[bool]string{true: ": ", false: ", "}[i == 0] + fmt.Sprintf("%d %s", state.Nodes, state.State)
		if hidden := state.Hidden(); hidden != "" {
			text += " (" + hidden + ")"
		}
	}

	return text
}

// manifests prints the table of manifests.
func (p screen) manifests(s view.Summary) {
	shown := s.Manifests[:min(len(s.Manifests), maxManifests)]
	rows := print.Rows(shown, func(m view.Manifest) []string {
		row := []string{m.Name}
		for _, count := range []int{m.Targets, m.UpToDate, m.Noop, m.Pending, m.Failed, m.Rejected, m.Unreachable} {
			row = append(row, strconv.Itoa(count))
		}
		return append(row, p.Short(oldest(m.Oldest, s.At)))
	})
	p.Table([]string{"MANIFEST", "NODES", "UP-TO-DATE", "NOOP", "PENDING", "FAILED", "REJECTED", "UNREACHABLE", "PENDING LONGEST"}, rows, "no assignments")
	if rest := s.Manifests[len(shown):]; len(rest) > 0 {
		text := fmt.Sprintf("and %d more", len(rest))
		if !slices.ContainsFunc(rest, func(m view.Manifest) bool { return m.NotUpToDate() > 0 }) {
			text += ", all up to date"
		}
		p.Printf("%s (--json has all)\n", text)
	}
}

// oldest describes the node that has been pending longest.
func oldest(o *view.Pending, now time.Time) string {
	if o == nil {
		return ""
	}

	return fmt.Sprintf("%s for %s: %s", o.Node, print.Age(o.Since, now), o.Reason)
}

// members formats a number of nodes with the first names.
func members(m view.Members) string {
	text := print.Count(m.Nodes, "node") + " (" + strings.Join(m.First[:min(len(m.First), maxNamed)], ", ")
	if m.Nodes > maxNamed {
		text += ", …"
	}

	return text + ")"
}

// versionText describes a version.
func versionText(v view.Version) string {
	text := print.Count(v.Nodes, "node") + " " + print.Cut(v.Version, maxWord)
	if v.Older {
		text += " (older: " + strings.Join(v.First[:min(len(v.First), maxNamed)], ", ") + ")"
	}

	return text
}

// most prints one line each for the first items, and the number of the others.
func most(p screen, name string, count int, text func(i int) string) {
	for i := range min(count, maxCellLines) {
		p.line(name, "%s", text(i))
		name = ""
	}
	if more := count - maxCellLines; more > 0 {
		p.line("", "and %d more (see --json)", more)
	}
}

// several prints a line with the number of nodes and the texts of the first.
func several[T any](p screen, name string, all []T, text func(T) string) {
	if len(all) == 0 {
		return
	}
	var words []string
	for _, one := range all[:min(len(all), maxNamed)] {
		words = append(words, text(one))
	}
	if len(all) > maxNamed {
		words = append(words, "…")
	}
	p.line(name, "%s: %s", print.Count(len(all), "node"), strings.Join(words, ", "))
}

// next returns commands that show details of the problems.
func next(s view.Summary) []string {
	var out []string
	for _, state := range s.States {
		if state.State != fleet.StatusOK && state.State != fleet.StatusNoManifest && len(out) == 0 {
			out = append(out, "fleet describe "+state.First[0])
		}
	}
	if len(out) == 0 && len(s.Messages) > 0 {
		out = append(out, "fleet describe "+s.Messages[0].Node)
	}
	for _, m := range s.Manifests {
		if m.Pending > 0 {
			return append(out, "fleet wait "+m.Name)
		}
	}

	return out
}

// brief formats a summary as one line, for a log of changes.
func brief(s view.Summary) string {
	text := "nodes " + states(s)
	for _, m := range s.Manifests[:min(len(s.Manifests), maxManifests)] {
		text += fmt.Sprintf("; %s %d/%d %s", m.Name, m.UpToDate, m.Targets, fleet.StatusUpToDate)
		for _, c := range []struct {
			count int
			word  fleet.Status
		}{{m.Failed, fleet.StatusFailed}, {m.Rejected, fleet.StatusRejected}, {m.Pending, fleet.StatusPending}, {m.Unreachable, fleet.StatusUnreachable}} {
			if c.count > 0 {
				text += fmt.Sprintf(", %d %s", c.count, c.word)
			}
		}
		if m.Noop > 0 {
			text += fmt.Sprintf(", %d %s", m.Noop, model.OutcomeNoop)
		}
	}
	if more := len(s.Manifests) - maxManifests; more > 0 {
		text += fmt.Sprintf("; and %s more", print.Count(more, "manifest"))
	}
	if title := s.LostTitle(); title != "" {
		text += "; " + title
	}
	for _, i := range s.Incomplete {
		text += "; incomplete: " + i
	}

	return text
}
