package provision

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/jsm.go/api"

	"github.com/musterfleet/muster/kvstore"
)

// Change is one setting of a bucket or stream that differs from the desired one.
type Change struct {
	Setting string `json:"setting"`
	From    string `json:"from"`
	To      string `json:"to"`
	// Refused is why the setting is not changed and what to do; empty when it is.
	Refused string `json:"refused,omitempty"`

	// optional reports whether muster works with the setting as it is.
	optional bool
}

// String returns the change in one line.
func (c Change) String() string {
	text := fmt.Sprintf("%s is %s, must be %s", c.Setting, c.From, c.To)
	if c.Refused != "" {
		text += " (" + c.Refused + ")"
	}

	return text
}

// The reasons for which a change is refused.
const (
	refusedFixed  = "the server cannot change it: copy what it holds, remove it and run again"
	refusedShrink = "data would be lost: lower it with the nats tool if that is intended"
)

// allowShrink permits the changes of an empty stream that would remove messages. An administrator continues with smaller
// sizes after the server had no room for all streams.
func allowShrink(changes []Change) {
	for i := range changes {
		if changes[i].Refused == refusedShrink {
			changes[i].Refused = ""
		}
	}
}

// comparison collects the changes that make a stream the desired one.
type comparison struct{ changes []Change }

// compare returns what differs between a stream and the desired one, and the
// configuration with these changes. A desired size of zero is any; what is larger
// than needed, or of no concern to muster, stays as its administrator set it. used is how
// many bytes the stream holds.
func compare(have, want api.StreamConfig, used uint64) ([]Change, api.StreamConfig) {
	c := &comparison{}
	equal(c, "retention", &have.Retention, want.Retention, refusedFixed)
	equal(c, "storage", &have.Storage, want.Storage, refusedFixed)
	c.subjects(&have, want)
	c.on("allow_direct", &have.AllowDirect, want.AllowDirect)
	c.rollup(&have, want)
	c.on("deny_delete", &have.DenyDelete, want.DenyDelete)
	c.on("allow_msg_ttl", &have.AllowMsgTTL, want.AllowMsgTTL)
	equal(c, "discard", &have.Discard, want.Discard, "")
	if want.Compression != api.NoCompression {
		equal(c, "compression", &have.Compression, want.Compression, "")
	}
	if want.RePublish != nil && (have.RePublish == nil || *have.RePublish != *want.RePublish) {
		c.add("republish", republishText(have.RePublish), republishText(want.RePublish), "")
		have.RePublish = want.RePublish
	}
	c.sizes(&have, want, used)
	c.limits(&have, want)
	if has, wants := have.Metadata[kvstore.FormatKey], want.Metadata[kvstore.FormatKey]; has != wants {
		c.add("format", cmp.Or(has, "none"), wants, "")
		c.changes[len(c.changes)-1].optional = !kvstore.IsFormer(have, want)
		have.Metadata = maps.Clone(have.Metadata)
		if have.Metadata == nil {
			have.Metadata = map[string]string{}
		}
		have.Metadata[kvstore.FormatKey] = wants
	}

	return c.changes, have
}

// The bounds of a message. A lower one would lose what every node stores; no server
// takes more.
const (
	MinMessage = 16 << 10
	MaxMessage = 64 << 20
)

// withBounds completes what is desired by the default bounds where a stream has none, or one of messages that is too
// low, and nobody chose any. used is how many bytes the stream holds: of what operators store nothing is lost.
func withBounds(want, have, defaults api.StreamConfig, used uint64) api.StreamConfig {
	if want.MaxMsgsPer == 0 && have.MaxMsgsPer <= 0 {
		want.MaxMsgsPer = defaults.MaxMsgsPer
	}
	if want.MaxMsgSize == 0 && have.MaxMsgSize < MinMessage {
		want.MaxMsgSize = defaults.MaxMsgSize
	}
	fits := isRenewed(want) || isOfOperators(want) && used <= uint64(max(defaults.MaxBytes, 0))
	if fits && want.MaxBytes == 0 && have.MaxBytes <= 0 {
		want.MaxBytes = defaults.MaxBytes
	}

	return want
}

// isRenewed reports whether what a stream holds is stored again before it expires:
// what a bound removes comes back.
func isRenewed(c api.StreamConfig) bool { return c.MaxMsgsPer == 1 && c.MaxAge > 0 }

// isOfOperators reports whether a stream has what operators of groups store: assignments and
// queued requests, which are announced. How many bytes that are is a choice of administrators.
func isOfOperators(c api.StreamConfig) bool { return c.RePublish != nil }

// subjects adds missing subjects and leaves further ones alone, except those that
// are wider than a missing one: the server takes no subjects that overlap.
func (c *comparison) subjects(have *api.StreamConfig, want api.StreamConfig) {
	missing := slices.DeleteFunc(slices.Clone(want.Subjects), func(s string) bool { return slices.Contains(have.Subjects, s) })
	if len(missing) == 0 {
		return
	}
	c.add("subjects", subjectsText(have.Subjects), subjectsText(want.Subjects), "")
	c.changes[len(c.changes)-1].optional = !slices.ContainsFunc(missing, func(s string) bool { return !covers(have.Subjects, s) })
	narrow := slices.DeleteFunc(slices.Clone(have.Subjects), func(s string) bool {
		return slices.ContainsFunc(missing, func(m string) bool { return covers([]string{s}, m) })
	})
	have.Subjects = slices.Concat(narrow, missing)
}

// covers reports whether one of some subjects, which may have wildcards, matches
// all that another does.
func covers(subjects []string, other string) bool {
	return slices.ContainsFunc(subjects, func(s string) bool {
		return kvstore.SubjectMatches(other, s) && (strings.HasSuffix(s, ">") || !strings.HasSuffix(other, ">"))
	})
}

// subjectsText lists subjects, of many the first one.
func subjectsText(subjects []string) string {
	const most = 4
	if len(subjects) > most {
		return fmt.Sprintf("%s and %d more", subjects[0], len(subjects)-1)
	}

	return strings.Join(subjects, ", ")
}

// rollup allows no more than is desired: whoever may write one key of a stream
// with rollup can remove all others. The server switches it on for a stream that
// marks what has expired.
func (c *comparison) rollup(have *api.StreamConfig, want api.StreamConfig) {
	if have.RollupAllowed != want.RollupAllowed {
		c.add("allow_rollup_hdrs", onOff(have.RollupAllowed), onOff(want.RollupAllowed), "")
		have.RollupAllowed = want.RollupAllowed
	}
	if !want.RollupAllowed && have.SubjectDeleteMarkerTTL > 0 {
		c.add("subject_delete_marker_ttl", have.SubjectDeleteMarkerTTL.String(), onOff(false), "")
		have.SubjectDeleteMarkerTTL = 0
	}
}

// sizes compares how much is kept. A history of 1 is fixed: no older value may
// come back when a newer one expires. The number of reports of a node is the choice
// of an operator.
func (c *comparison) sizes(have *api.StreamConfig, want api.StreamConfig, used uint64) {
	isBucket := want.DenyDelete && want.Discard == api.DiscardNew
	switch {
	case want.MaxMsgsPer == 1 && have.MaxMsgsPer != 1:
		c.add("max_msgs_per_subject", limit(have.MaxMsgsPer), "1", refusedShrink)
		have.MaxMsgsPer = 1
	case isBucket && have.MaxMsgsPer > 0:
		atLeast(c, "max_msgs_per_subject", &have.MaxMsgsPer, want.MaxMsgsPer)
	case !isBucket && want.MaxMsgsPer > 1:
		bound(c, "max_msgs_per_subject", &have.MaxMsgsPer, want.MaxMsgsPer)
	}
	// The ids of a longer one take memory of the server, as much as who writes likes.
	equal(c, "duplicate_window", &have.Duplicates, want.Duplicates, "")
	grow(c, "num_replicas", &have.Replicas, want.Replicas)
	grow(c, "max_age", &have.MaxAge, want.MaxAge)
	losesNothing := isRenewed(want) || isOfOperators(want) && used <= uint64(max(want.MaxBytes, 0))
	if losesNothing && have.MaxBytes <= 0 && want.MaxBytes > 0 {
		bound(c, "max_bytes", &have.MaxBytes, want.MaxBytes)
	} else {
		grow(c, "max_bytes", &have.MaxBytes, want.MaxBytes)
	}
}

// limits lifts those at which what muster stores is refused or lost. The size of a
// stream that discards its oldest messages is the choice of its administrator, and
// so is the size of all that operators store.
func (c *comparison) limits(have *api.StreamConfig, want api.StreamConfig) {
	if want.MaxMsgSize > 0 && have.MaxMsgSize != want.MaxMsgSize {
		c.add("max_msg_size", limit(have.MaxMsgSize), limit(want.MaxMsgSize), "")
		have.MaxMsgSize = want.MaxMsgSize
	} else if want.MaxMsgSize < 0 {
		unlimited(c, "max_msg_size", &have.MaxMsgSize)
	}
	if want.Discard == api.DiscardNew {
		unlimited(c, "max_msgs", &have.MaxMsgs)
	}
	if isBucket := want.Discard == api.DiscardNew && want.DenyDelete; isBucket {
		if !isOfOperators(want) {
			unlimited(c, "max_bytes", &have.MaxBytes)
		}
		unlimited(c, "max_age", &have.MaxAge)
	}
	have.MaxAge = max(have.MaxAge, 0)
}

// equal changes a setting that differs.
func equal[T interface {
	comparable
	fmt.Stringer
}](c *comparison, setting string, have *T, want T, refused string) {
	if *have != want {
		c.add(setting, (*have).String(), want.String(), refused)
		*have = want
	}
}

// on switches a setting on, and never off.
func (c *comparison) on(setting string, have *bool, want bool) {
	if want && !*have {
		c.add(setting, onOff(false), onOff(true), "")
		*have = true
	}
}

type number interface{ ~int | ~int32 | ~int64 }

// atLeast raises what is too low.
func atLeast[T number](c *comparison, setting string, have *T, want T) {
	if want > 0 && *have < want {
		c.add(setting, limit(*have), limit(want), "")
		*have = want
	}
}

// grow raises a limit to an operator's choice, and refuses to lower it. Zero or
// less is no limit; a choice of zero is none.
func grow[T number](c *comparison, setting string, have *T, want T) {
	has := max(*have, 0)
	if want == 0 || has == max(want, 0) {
		return
	}
	refused := ""
	if has == 0 || (want > 0 && want < has) {
		refused = refusedShrink
	}
	c.add(setting, limit(has), limit(want), refused)
	*have = want
}

// bound sets a limit that protects the nodes from each other. Where there was none,
// what exceeds it is removed; an operator does not lower one by accident.
func bound[T number](c *comparison, setting string, have *T, want T) {
	if *have == want {
		return
	}
	refused := ""
	if *have > 0 && want < *have {
		refused = refusedShrink
	}
	c.add(setting, limit(*have), limit(want), refused)
	*have = want
}

// unlimited lifts a limit.
func unlimited[T number](c *comparison, setting string, have *T) {
	if *have > 0 {
		c.add(setting, limit(*have), limit(T(0)), "")
		*have = -1
	}
}

// add notes a change. muster cannot work while one of the settings named here is
// missing; all others concern how much is kept, and what is allowed beyond need.
func (c *comparison) add(setting, from, to, refused string) {
	needed := to != onOff(false) && slices.Contains([]string{"retention", "subjects", "allow_direct", "allow_rollup_hdrs", "allow_msg_ttl", "republish"}, setting)
	c.changes = append(c.changes, Change{Setting: setting, From: from, To: to, Refused: refused, optional: !needed})
}

func onOff(on bool) string {
	if on {
		return "on"
	}

	return "off"
}

func limit[T number](n T) string {
	if n <= 0 {
		return "unlimited"
	}
	if d, ok := any(n).(time.Duration); ok {
		return d.String()
	}

	return strconv.FormatInt(int64(n), 10)
}

func republishText(r *api.RePublish) string {
	switch {
	case r == nil:
		return "off"
	case r.HeadersOnly:
		return "headers of " + r.Source + " on " + r.Destination
	default:
		return "messages of " + r.Source + " on " + r.Destination
	}
}
