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

// maxChanges is the maximum number of recent changes read from each bucket.
const maxChanges = 50_000

// ofFleetDocument is the JSON document of the fleet's history.
type ofFleetDocument struct {
	Changes []view.ControlChange `json:"changes"`
	// More: there are earlier changes.
	More       bool     `json:"more,omitempty"`
	Incomplete []string `json:"incomplete,omitempty"`

	// isLimited: a larger limit shows more changes.
	isLimited bool
	// isShared: the limit is divided fairly among nodes and groups, so these are not simply the last changes.
	isShared bool
}

// ofFleet shows the newest changes of all assignments, pauses, labels and groups, like the audit page of the
// dashboard.
func (c *historyCommand) ofFleet(ctx context.Context, store *Store) error {
	// Without --limit every changed node and group is shown: many changes of one of them do not displace the
	// others.
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
			doc.Incomplete = append(doc.Incomplete, onlyLast("assignments", len(assigned)))
		}
		if isCut(written, others) {
			doc.Incomplete = append(doc.Incomplete, onlyLast("pauses, labels and groups", len(written)))
		}
	}

	return c.showChanges(doc)
}

// newest returns the changes to show, newest last, and the number of hidden changes. If isShared is true, it
// divides the limit among nodes and groups.
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

// mostAssigned returns how many recent assignment changes to read, and whether --limit sets that number.
func (c *historyCommand) mostAssigned() (most int, isLimit bool) {
	if c.limit == 0 || c.limit >= maxChanges || len(c.groups)+len(c.events) > 0 || c.by != "" || !c.to.IsZero() {
		return maxChanges, false
	}

	return c.limit, true
}

// onlyLast returns the remark that a bucket has more changes than the command reads.
func onlyLast(what string, read int) string {
	return fmt.Sprintf("only the last %[2]d changes of %[1]s are searched; there are more", what, read)
}

// ofGroups returns the changes of the groups given with --group, or all changes without the flag.
func (c *historyCommand) ofGroups(all []view.ControlChange) []view.ControlChange {
	if len(c.groups) == 0 {
		return all
	}

	return slices.DeleteFunc(all, func(change view.ControlChange) bool {
		family, _, _ := model.SplitKey(change.Key)
		return !slices.ContainsFunc(c.groups, func(group string) bool { return family == model.GroupFamily(group) })
	})
}

// warnUnknown warns of groups without changes and without nodes.
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

// ofEvents returns the changes with the events given with --event, or all changes without the flag.
func (c *historyCommand) ofEvents(all []view.ControlChange) []view.ControlChange {
	if len(c.events) == 0 {
		return all
	}

	return slices.DeleteFunc(all, func(change view.ControlChange) bool { return !slices.Contains(c.events, eventOf(change)) })
}

// authorOf returns the author of a change.
func authorOf(c view.ControlChange) string { return c.By }

// events returns the values of the column EVENT.
func events() []string {
	var out []string
	for _, kind := range []view.ChangeKind{view.ChangeAssigned, view.ChangeRemoved, view.ChangePaused, view.ChangeResumed, view.ChangeWritten, view.ChangeRefused} {
		out = append(out, eventOf(view.ControlChange{Kind: kind}))
	}

	return out
}

// eventOf returns the value of the column EVENT for a change.
func eventOf(c view.ControlChange) string {
	if c.Kind == view.ChangeRefused {
		return string(fleet.StatusRejected)
	}

	return string(c.Kind)
}

// ofControl shows the history of a pause, labels or groups key. found reports whether the key has a history.
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
			c.Print.Remark("more changes exist; --limit 0 shows all")
		case doc.isLimited:
			c.Print.Remark("earlier changes exist; --limit 0 shows all")
		}
		c.remarks(0, doc.Incomplete)
	})
}

// changeRow formats a change as a table row.
func changeRow(c view.ControlChange) []string {
	return []string{print.Time(c.Time), c.Key, strconv.FormatUint(c.Revision, 10), eventOf(c), cmp.Or(print.OneLine(c.By), "-"), print.OneLine(changeDetails(c))}
}

// changeDetails returns the details that the other columns do not show.
func changeDetails(c view.ControlChange) string {
	switch c.Kind {
	case view.ChangeResumed:
		return strings.TrimPrefix(c.Text, string(c.Kind))
	case view.ChangePaused:
		// The text of a pause repeats the author.
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
