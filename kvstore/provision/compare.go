package provision

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/jsm.go/api"
)

// Change is one setting of a bucket or stream that differs from what muster
// needs or was asked for.
type Change struct {
	Setting string `json:"setting"`
	From    string `json:"from"`
	To      string `json:"to"`
	// Refused says why it is not changed and what to do; empty when it will be.
	Refused string `json:"refused,omitempty"`

	// optional says that muster works with the setting as it is.
	optional bool
}

// String says the change in one line.
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
	refusedShrink = "it would lose what it holds: lower it with the nats tool if that is meant"
)

// comparison collects the changes that bring a stream to what is wanted.
type comparison struct {
	have, want api.StreamConfig
	changes    []Change
}

// compare lists what differs between a stream and what is wanted of it. A size
// of zero is not wanted in particular, and what is larger than needed stays.
func compare(have, want api.StreamConfig) []Change {
	c := &comparison{have: have, want: want}
	c.must("retention", have.Retention.String(), want.Retention.String(), refusedFixed)
	c.must("storage", have.Storage.String(), want.Storage.String(), refusedFixed)
	c.subjects()
	c.flag("allow_direct", have.AllowDirect, want.AllowDirect)
	c.rollup()
	c.flag("deny_delete", have.DenyDelete, want.DenyDelete)
	c.flag("allow_atomic", have.AllowAtomicPublish, want.AllowAtomicPublish)
	c.flag("allow_msg_ttl", have.AllowMsgTTL, want.AllowMsgTTL)
	c.must("discard", have.Discard.String(), want.Discard.String(), "")
	c.republish()
	c.sizes()
	c.limits()
	for i := range c.changes {
		c.changes[i].optional = !needed(c.changes[i])
	}

	return c.changes
}

// subjects wants those of muster; further ones are not muster's business.
func (c *comparison) subjects() {
	for _, s := range c.want.Subjects {
		if !slices.Contains(c.have.Subjects, s) {
			c.add("subjects", strings.Join(c.have.Subjects, ", "), strings.Join(c.want.Subjects, ", "), "")
			return
		}
	}
}

func (c *comparison) republish() {
	if c.want.RePublish != nil && (c.have.RePublish == nil || *c.have.RePublish != *c.want.RePublish) {
		c.add("republish", republishText(c.have.RePublish), republishText(c.want.RePublish), "")
	}
}

// rollup is nothing more than what is wanted: whoever may write one key of a
// stream that allows it can remove all others. The server switches it on where
// it leaves marks for what has expired.
func (c *comparison) rollup() {
	c.must("allow_rollup_hdrs", onOff(c.have.RollupAllowed), onOff(c.want.RollupAllowed), "")
	if !c.want.RollupAllowed && c.have.SubjectDeleteMarkerTTL > 0 {
		c.add("subject_delete_marker_ttl", c.have.SubjectDeleteMarkerTTL.String(), onOff(false), "")
	}
}

// sizes compares limits. A history of 1 is fixed: behind a value that expires
// none that is older may come back.
func (c *comparison) sizes() {
	if c.want.MaxMsgsPer == 1 && c.have.MaxMsgsPer != 1 {
		c.add("max_msgs_per_subject", number(c.have.MaxMsgsPer), "1", refusedShrink)
	} else if c.have.MaxMsgsPer > 0 {
		c.atLeast("max_msgs_per_subject", c.have.MaxMsgsPer, c.want.MaxMsgsPer, number)
	}
	c.atLeast("duplicate_window", int64(c.have.Duplicates), int64(c.want.Duplicates), duration)
	c.grow("num_replicas", int64(c.have.Replicas), int64(c.want.Replicas), number)
	c.grow("max_age", int64(c.have.MaxAge), int64(c.want.MaxAge), duration)
	c.grow("max_bytes", c.have.MaxBytes, c.want.MaxBytes, number)
}

// limits wants none of those at which what muster puts is refused or lost. How
// large a stream becomes that forgets the oldest is its administrator's choice,
// and so is the size of all bundles.
func (c *comparison) limits() {
	c.unlimited("max_msg_size", int64(c.have.MaxMsgSize), number)
	if c.want.Discard == api.DiscardNew {
		c.unlimited("max_msgs", c.have.MaxMsgs, number)
	}
	if isBucket(c.want) {
		c.unlimited("max_bytes", c.have.MaxBytes, number)
		c.unlimited("max_age", int64(c.have.MaxAge), duration)
	}
}

// isBucket tells a key-value bucket from an object store and a plain stream.
func isBucket(c api.StreamConfig) bool { return c.Discard == api.DiscardNew && c.DenyDelete }

// unlimited lifts a limit.
func (c *comparison) unlimited(setting string, have int64, text func(int64) string) {
	if have > 0 {
		c.add(setting, text(have), text(0), "")
	}
}

// needed tells whether muster cannot do its job while a setting differs. All
// others concern how much is kept, what becomes of it at a limit, and what is
// allowed beyond what muster uses.
func needed(c Change) bool {
	return c.To != onOff(false) && slices.Contains([]string{"retention", "subjects", "allow_direct", "allow_rollup_hdrs", "allow_atomic", "allow_msg_ttl", "republish"}, c.Setting)
}

// must wants equality.
func (c *comparison) must(setting, from, to, refused string) {
	if from != to {
		c.add(setting, from, to, refused)
	}
}

// flag wants what is wanted; what is allowed beyond it stays.
func (c *comparison) flag(setting string, have, want bool) {
	if want && !have {
		c.add(setting, onOff(have), onOff(want), "")
	}
}

// atLeast raises what is too low.
func (c *comparison) atLeast(setting string, have, want int64, text func(int64) string) {
	if want > 0 && have < want {
		c.add(setting, text(have), text(want), "")
	}
}

// grow raises to what was asked for, and refuses to lower. A limit of zero or
// less is none, and more than any.
func (c *comparison) grow(setting string, have, want int64, text func(int64) string) {
	have = max(have, 0)
	if want == 0 || have == max(want, 0) {
		return
	}
	refused := ""
	if have == 0 || (want > 0 && want < have) {
		refused = refusedShrink
	}
	c.add(setting, text(have), text(want), refused)
}

func (c *comparison) add(setting, from, to, refused string) {
	c.changes = append(c.changes, Change{Setting: setting, From: from, To: to, Refused: refused})
}

func onOff(on bool) string {
	if on {
		return "on"
	}

	return "off"
}

func number(n int64) string {
	if n <= 0 {
		return "unlimited"
	}

	return strconv.FormatInt(n, 10)
}

func duration(n int64) string {
	if n <= 0 {
		return "unlimited"
	}

	return time.Duration(n).String()
}

func republishText(r *api.RePublish) string {
	if r == nil {
		return "off"
	}
	what := "messages"
	if r.HeadersOnly {
		what = "headers"
	}

	return what + " of " + r.Source + " on " + r.Destination
}
