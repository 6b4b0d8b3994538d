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
	// Refused is the reason to leave the setting, with a remedy. It is empty if the setting is
	// changed.
	Refused string `json:"refused,omitempty"`

	// optional reports whether muster works without the change.
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

// Reasons to refuse a change.
const (
	refusedFixed  = "the server cannot change it: copy its messages, remove it and run the command again"
	refusedShrink = "data would be lost: lower it with the nats tool if that is intended"
)

// allowShrink permits the changes of an empty stream that would remove messages. An administrator
// continues with smaller sizes after the server had no room for all streams.
func allowShrink(changes []Change) {
	for i := range changes {
		if changes[i].Refused == refusedShrink {
			changes[i].Refused = ""
		}
	}
}

type comparison struct{ changes []Change }

// compare returns the settings of a stream that differ, and the configuration with these changes. A
// desired size of zero accepts any size. compare keeps settings that are larger than needed or
// unimportant to muster. used is the size of the stream in bytes.
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
		have.Metadata = maps.Clone(have.Metadata)
		if have.Metadata == nil {
			have.Metadata = map[string]string{}
		}
		have.Metadata[kvstore.FormatKey] = wants
	}

	return c.changes, have
}

// Limits of a message. A lower limit would lose documents of every node, and no server accepts more.
const (
	MinMessage = 16 << 10
	MaxMessage = 64 << 20
)

// withBounds fills in the default limits for a stream that has none, or whose message limit is too
// low, unless the operator chose a limit. used is the size of the stream in bytes: withBounds never
// removes documents of operators.
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

// isRenewed reports whether nodes store the content of a stream again before it expires. Then messages
// that a new limit removes return.
func isRenewed(c api.StreamConfig) bool { return c.MaxMsgsPer == 1 && c.MaxAge > 0 }

// isOfOperators reports whether operators of groups write to a stream: assignments and queued
// requests, which the server republishes. Administrators choose the size of such a stream.
func isOfOperators(c api.StreamConfig) bool { return c.RePublish != nil }

// subjects adds missing subjects. It removes existing subjects only if they are wider than a missing
// one, because the server rejects overlapping subjects.
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

func covers(subjects []string, other string) bool {
	return slices.ContainsFunc(subjects, func(s string) bool {
		return kvstore.SubjectMatches(other, s) && (strings.HasSuffix(s, ">") || !strings.HasSuffix(other, ">"))
	})
}

// subjectsText returns the subjects as text, only the first of many.
func subjectsText(subjects []string) string {
	const most = 4
	if len(subjects) > most {
		return fmt.Sprintf("%s and %d more", subjects[0], len(subjects)-1)
	}

	return strings.Join(subjects, ", ")
}

// rollup switches rollup off unless it is desired: with rollup, a user who may write one key of a
// stream can remove all others. The server switches it on for a stream with markers for expired
// messages.
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

// sizes compares the retention of a stream. A history of 1 is fixed, because an older value must not
// return when a newer one expires. An operator chooses the number of reports per node.
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
	// The server keeps message ids in memory for this time, and a user may write any number.
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

// limits removes limits that would make the server refuse or drop messages of muster. Administrators
// choose the size of a stream that discards its oldest messages, and of the streams that operators
// write to.
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

func equal[T interface {
	comparable
	fmt.Stringer
}](c *comparison, setting string, have *T, want T, refused string) {
	if *have != want {
		c.add(setting, (*have).String(), want.String(), refused)
		*have = want
	}
}

// on switches a setting on. It never switches one off.
func (c *comparison) on(setting string, have *bool, want bool) {
	if want && !*have {
		c.add(setting, onOff(false), onOff(true), "")
		*have = true
	}
}

type number interface{ ~int | ~int32 | ~int64 }

func atLeast[T number](c *comparison, setting string, have *T, want T) {
	if want > 0 && *have < want {
		c.add(setting, limit(*have), limit(want), "")
		*have = want
	}
}

// grow raises a limit to the operator's choice and refuses to lower it. Zero or less means no limit,
// and a desired value of zero means no choice.
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

// bound sets a limit that protects nodes from each other. A stream without a limit loses the excess
// messages. An existing limit is only raised, so an operator cannot lower it by accident.
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

func unlimited[T number](c *comparison, setting string, have *T) {
	if *have > 0 {
		c.add(setting, limit(*have), limit(T(0)), "")
		*have = -1
	}
}

// add records a change. muster cannot work without the settings named here. All other settings concern
// retention or allow more than needed.
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
