package fleetcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// maxChanges is among how many of the last changes of each bucket those are looked for that are shown.
const maxChanges = 50_000

// ofFleetDocument is what operators changed in the fleet, as a document.
type ofFleetDocument struct {
	Changes []view.ControlChange `json:"changes"`
	// More is that there were others before these.
	More       bool     `json:"more,omitempty"`
	Incomplete []string `json:"incomplete,omitempty"`

	// isLimited is that a larger limit has some of those.
	isLimited bool
	// isShared is that these are not the last ones: one node or group has a share of them.
	isShared bool
}

// ofFleet shows the newest changes of all assignments, pauses, labels and groups, as the audit of the dashboard
// has them.
func (c *historyCommand) ofFleet(ctx context.Context, store *Store) error {
	// Whoever does not say how many sees all who were changed: one flood does not fill it.
	isShared := !c.Given("limit") && len(c.groups) == 0
	most, isLimit := c.mostAssigned()
	if isShared {
		most, isLimit = maxChanges, false
	}
	read := kvstore.NewAssignments(store.KV).Audit
	if isLimit {
		read = kvstore.NewAssignments(store.KV).Latest
	}
	assigned, more, err := read(ctx, most)
	if err != nil {
		return err
	}
	written, others, err := kvstore.NewControl(store.KV).Changes(ctx, maxChanges)
	if err != nil && !errors.Is(err, kvstore.ErrNotProvisioned) {
		return err
	}
	changes := view.MergeChanges(view.AssignmentChanges(assigned, ""), view.ControlChanges(written, ""))
	ofGroups := c.ofGroups(changes)
	if err := c.warnUnknown(ctx, store, ofGroups); err != nil {
		return err
	}
	all, before := c.newest(selectEvents(c, c.ofEvents(ofGroups), timeOf, authorOf), isShared)
	isCut := func(read []model.Entry, more bool) bool {
		return more && len(read) > 0 && read[len(read)-1].Time.After(c.from)
	}
	doc := ofFleetDocument{Changes: all, More: before > 0 || isCut(assigned, more), isLimited: before > 0 || isLimit && isCut(assigned, more), isShared: isShared}
	if doc.Changes == nil {
		doc.Changes = []view.ControlChange{}
	}
	if isAllShown := c.limit == 0 || len(all) < c.limit; isAllShown {
		if !isLimit && isCut(assigned, more) {
			doc.Incomplete = append(doc.Incomplete, lookedAt("assignments", len(assigned)))
		}
		if isCut(written, others) {
			doc.Incomplete = append(doc.Incomplete, lookedAt("pauses, labels and groups", len(written)))
		}
	}

	return c.showChanges(doc)
}

// newest returns the changes that are shown, the newest last, and how many are not: the last ones, or of each node and
// group a share.
func (c *historyCommand) newest(changes []view.ControlChange, isShared bool) (shown []view.ControlChange, more int) {
	if !isShared {
		return assign.Since(changes, timeOf, c.from, c.limit)
	}
	all, _ := assign.Since(changes, timeOf, c.from, 0)
	slices.Reverse(all)
	shown = kvstore.ShareByFamily(all, c.limit, func(change view.ControlChange) string {
		family, _, _ := model.SplitKey(change.Key)
		return family
	})
	more = len(all) - len(shown)
	slices.Reverse(shown)

	return shown, more
}

// mostAssigned returns how many of the last changes of assignments are read, and whether it is the flag that says so:
// then a larger one has more.
func (c *historyCommand) mostAssigned() (most int, isLimit bool) {
	if c.limit == 0 || c.limit >= maxChanges || len(c.groups)+len(c.events) > 0 || c.by != "" || !c.to.IsZero() {
		return maxChanges, false
	}

	return c.limit, true
}

// lookedAt says that a bucket has more changes than are read.
func lookedAt(what string, read int) string {
	return fmt.Sprintf("of %s the last %d changes are looked at, and there are more", what, read)
}

// ofGroups returns the changes of the groups that were given, all without any.
func (c *historyCommand) ofGroups(all []view.ControlChange) []view.ControlChange {
	if len(c.groups) == 0 {
		return all
	}

	return slices.DeleteFunc(all, func(change view.ControlChange) bool {
		family, _, _ := model.SplitKey(change.Key)
		return !slices.ContainsFunc(c.groups, func(group string) bool { return family == model.GroupFamily(group) })
	})
}

// warnUnknown warns of groups without changes that no known node is in.
func (c *historyCommand) warnUnknown(ctx context.Context, store *Store, changes []view.ControlChange) error {
	hasChanges := func(t fleet.Target) bool {
		return slices.ContainsFunc(changes, func(change view.ControlChange) bool {
			family, _, _ := model.SplitKey(change.Key)
			return family == t.String()
		})
	}
	unknown := slices.DeleteFunc(fleet.Targets(nil, c.groups, false), hasChanges)
	if len(unknown) == 0 {
		return nil
	}
	nodes, err := store.Nodes(ctx)
	if err == nil {
		WarnUnknown(c.Log, unknown, nodes)
	}

	return err
}

// ofEvents returns the changes of the events that were given, all without any.
func (c *historyCommand) ofEvents(all []view.ControlChange) []view.ControlChange {
	if len(c.events) == 0 {
		return all
	}

	return slices.DeleteFunc(all, func(change view.ControlChange) bool { return !slices.Contains(c.events, eventOf(change)) })
}

// authorOf returns the author of a change.
func authorOf(c view.ControlChange) string { return c.By }

// events are the words of the column EVENT.
func events() []string {
	var out []string
	for _, kind := range []view.ChangeKind{view.ChangeAssigned, view.ChangeRemoved, view.ChangePaused, view.ChangeResumed, view.ChangeWritten, view.ChangeRefused} {
		out = append(out, eventOf(view.ControlChange{Kind: kind}))
	}

	return out
}

// eventOf returns the word of a change in the column EVENT.
func eventOf(c view.ControlChange) string {
	if c.Kind == view.ChangeRefused {
		return string(fleet.StatusRejected)
	}

	return string(c.Kind)
}

// ofControl shows what operators wrote under a key about a node or a group; found is that they wrote something.
func (c *historyCommand) ofControl(ctx context.Context, store *Store) (found bool, err error) {
	family, _, _ := model.SplitKey(c.manifest)
	written, err := kvstore.NewControl(store.KV).History(ctx, family)
	written = slices.DeleteFunc(written, func(e model.Entry) bool { return e.Key != c.manifest })
	if err != nil || len(written) == 0 {
		return false, err
	}
	all, before := assign.Since(selectEvents(c, view.ControlChanges(written, ""), timeOf, authorOf), timeOf, c.from, c.limit)
	doc := ofFleetDocument{Changes: all, More: before > 0, isLimited: before > 0, Incomplete: full(map[string]int{c.manifest: len(written)})}
	if doc.Changes == nil {
		doc.Changes = []view.ControlChange{}
	}

	return true, c.showChanges(doc)
}

func timeOf(c view.ControlChange) time.Time { return c.Time }

// showChanges prints changes.
func (c *historyCommand) showChanges(doc ofFleetDocument) error {
	return c.Print.Result(c.Format, doc, func() {
		rows := make([][]string, len(doc.Changes))
		for i, change := range doc.Changes {
			rows[i] = changeRow(change)
		}
		c.Print.Table([]string{"TIME", "KEY", "REVISION", "EVENT", "BY", "DETAILS"}, rows, c.none())
		switch {
		case doc.isLimited && doc.isShared:
			c.Print.Remark("there are more than these: --limit 0 shows all")
		case doc.isLimited:
			c.Print.Remark("there are more before these: --limit 0 shows all")
		}
		c.remarks(0, doc.Incomplete)
	})
}

// changeRow returns a change as a row.
func changeRow(c view.ControlChange) []string {
	return []string{print.Time(c.Time), c.Key, strconv.FormatUint(c.Revision, 10), eventOf(c), cmp.Or(print.OneLine(c.By), "-"), print.OneLine(changeDetails(c))}
}

// changeDetails returns what a change is beside what the other columns have.
func changeDetails(c view.ControlChange) string {
	switch c.Kind {
	case view.ChangeResumed:
		return strings.TrimPrefix(c.Text, string(c.Kind))
	case view.ChangePaused:
		// Who paused is in the pause, too.
		when, why, hasReason := strings.Cut(strings.TrimPrefix(c.Text, string(c.Kind)), ": ")
		if when = strings.TrimSpace(strings.TrimSuffix(when, " by "+c.By)); hasReason && when != "" {
			when += ": "
		}
		return when + why
	default:
		return c.Text
	}
}

// none returns the remark for no changes: it does not claim that nothing changed, because a filter may have a typo.
func (c *historyCommand) none() string {
	if len(c.groups)+len(c.events) > 0 || c.by != "" || !c.from.IsZero() || !c.to.IsZero() {
		return "no changes match"
	}

	return "nothing was changed"
}
