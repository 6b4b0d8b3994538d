// Package bounds keeps texts and documents within what a server takes as one message.
package bounds

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
)

// The bounds of a report. A text counts as it is in JSON, where one byte can
// become six.
const (
	// maxReport is well below what a server takes as one message by default.
	maxReport = 512 << 10
	// envelope is what a message holds beside the document, and more.
	envelope  = 8 << 10
	maxErrors = 100
	// MaxError is how long one error of a report may be.
	MaxError = 4 << 10
	// maxText is how long a text of the node's state may be.
	maxText = 1 << 10
)

// minText is the shortest length to which State cuts texts, in bytes.
const minText = 64

// cutMark ends a shortened text.
const cutMark = " … (cut)"

// MaxDocument returns how long a report or a state may be, encoded, where the
// server takes messages of at most maxMessage bytes; zero is not known.
func MaxDocument(maxMessage int64) int {
	if maxMessage > 0 {
		return int(min(maxReport, max(maxMessage-envelope, envelope)))
	}

	return maxReport
}

// Text bounds a text to what the state of a node has room for.
func Text(s string) string { return TextTo(s, maxText) }

// TextTo bounds a text to a number of bytes in JSON.
func TextTo(s string, most int) string {
	size := 0
	for i, r := range s {
		if size += encodedLen(r); size > most {
			return strings.ToValidUTF8(s[:i], "") + cutMark
		}
	}

	return s
}

func encodedLen(r rune) int {
	switch {
	case r < ' ', r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029', r == utf8.RuneError:
		return len(`\u0000`)
	case r == '"', r == '\\':
		return 2
	default:
		return utf8.RuneLen(r)
	}
}

func fits(document any, limit int) bool {
	b, err := json.Marshal(document)

	return err == nil && len(b) <= limit
}

// Errors bounds a list of errors: the first ones, and how many more there are.
func Errors(errs []string, limit int) []string {
	most := min(MaxError, limit*3/4/maxErrors)
	out := make([]string, 0, min(len(errs), maxErrors+1))
	for _, e := range errs[:min(len(errs), maxErrors)] {
		out = append(out, TextTo(e, most))
	}
	if more := len(errs) - maxErrors; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}

	return out
}

// Transaction returns a transaction that fits into a message: its status and
// properties are left out, then its outputs are cut; where that is not enough these
// are left out too, and its diffs and other long texts are cut.
func Transaction(t *model.Transaction, limit int) *model.Transaction {
	if rawSize(t) <= limit && fits(t, limit) {
		return t
	}
	lean := *t
	lean.Properties, lean.Status, lean.Outputs = nil, nil, outputs(t.Outputs, limit*3/4)
	if rawSize(&lean) <= limit && fits(&lean, limit) {
		return &lean
	}

	return shortened(t, limit)
}

// outputs returns a copy of outputs with all texts shortened to a total of most bytes in JSON.
func outputs(all map[string]any, most int) map[string]any {
	short := maps.Clone(all)
	for name, value := range all {
		if text, ok := value.(string); ok {
			short[name] = TextTo(text, most/len(all))
		}
	}

	return short
}

func shortened(t *model.Transaction, limit int) *model.Transaction {
	short := *t
	short.Properties, short.Status, short.Outputs = nil, nil, nil
	short.NoopMessage, short.SkipReason = Text(t.NoopMessage), Text(t.SkipReason)
	short.UnmetRequirements = t.UnmetRequirements[:min(len(t.UnmetRequirements), maxErrors)]
	short.WouldRefresh = t.WouldRefresh[:min(len(t.WouldRefresh), maxErrors)]
	short.Errors = Errors(t.Errors, limit/4)
	changes, checks := t.Changes[:min(len(t.Changes), maxErrors)], t.HealthCheck[:min(len(t.HealthCheck), maxErrors)]
	// A change has five texts and some words, and all of them have a third of it.
	most := min(maxText, limit/3/(6*max(len(changes), 1)))
	short.Changes, short.HealthCheck = make([]model.Change, 0, len(changes)), make([]model.HealthResult, 0, len(checks))
	for _, c := range changes {
		for _, text := range []*string{&c.Property, &c.Diff, &c.From, &c.To, &c.Message} {
			*text = TextTo(*text, most)
		}
		short.Changes = append(short.Changes, c)
	}
	most = min(maxText, limit/8/max(len(checks), 1))
	for _, c := range checks {
		c.Output = TextTo(c.Output, most)
		short.HealthCheck = append(short.HealthCheck, c)
	}

	return &short
}

// rawSize returns a lower bound of the size of a transaction in bytes, without encoding it.
func rawSize(t *model.Transaction) int {
	size := len(t.Properties) + len(t.Status)
	for _, c := range t.Changes {
		size += len(c.Diff) + len(c.From) + len(c.To)
	}
	for _, e := range t.Errors {
		size += len(e)
	}

	return size
}

// MaxState returns the maximum encoded length of a node's state, where its bucket accepts values of at most
// maxMessage bytes; zero means that the limit is unknown.
func MaxState(maxMessage int64) int {
	if maxMessage > 0 {
		return int(max(maxMessage-envelope, envelope))
	}

	return maxReport
}

// State returns a state that fits into limit bytes, or s if limit is zero. It shortens the texts about manifests and
// control documents first. If that is not enough, it removes the counts of manifests that need no attention, then some
// manifests, and reports this in the message. It changes both maps of s.
func State(s model.NodeState, limit int) model.NodeState {
	if limit == 0 {
		return s
	}
	for most := maxText / 4; !fits(s, limit) && most >= minText; most /= 4 {
		for key, m := range s.Manifests {
			m.Late, m.Error = TextTo(m.Late, most), TextTo(m.Error, most)
			s.Manifests[key] = m
		}
		for key, why := range s.RejectedControl {
			s.RejectedControl[key] = TextTo(why, most)
		}
	}
	if fits(s, limit) {
		return s
	}
	for key, m := range s.Manifests {
		if !needsAttention(m) {
			m.Counts = model.Counts{}
			s.Manifests[key] = m
		}
	}
	if fits(s, limit) {
		return s
	}

	return dropManifests(s, limit)
}

// needsAttention reports whether a manifest failed or its newest revision is not active.
func needsAttention(m model.ManifestState) bool {
	return m.Late != "" || m.Outcome == model.OutcomeFailed || m.Outcome == model.OutcomeRefused
}

// dropManifests returns a state with as many manifests as fit into limit bytes, the ones that need attention first. The
// message names the remedy.
func dropManifests(s model.NodeState, limit int) model.NodeState {
	all, message := s.Manifests, s.Message
	report := func(dropped int) {
		s.Message = strings.TrimPrefix(message+"; "+tooMany(dropped, len(all), limit), "; ")
	}
	report(len(all)) // the longest message
	s.Manifests = nil
	if !fits(s, limit) {
		s.RejectedControl, s.Flapping = nil, nil
	}
	b, _ := json.Marshal(s) // plain fields always encode
	room := limit - len(b) - len(`,"manifests":{}`)
	rank := func(key string) int {
		if needsAttention(all[key]) {
			return 0
		}
		return 1
	}
	keys := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a, b))
	})
	s.Manifests = map[string]model.ManifestState{}
	for _, key := range keys {
		b, _ := json.Marshal(map[string]model.ManifestState{key: all[key]})
		if room -= len(b); room < 0 {
			break
		}
		s.Manifests[key] = all[key]
	}
	report(len(all) - len(s.Manifests))

	return s
}

func tooMany(dropped, all, limit int) string {
	return fmt.Sprintf("the states of %d of %d manifests are not stored, because together they exceed %d KiB: merge manifests, or raise the limit with `muster fleet init --state-max SIZE`", dropped, all, limit>>10)
}

// Event returns a state that fits into a report of limit bytes. It keeps the message, because the limit of reports is
// not the limit of the stored state.
func Event(s model.NodeState, limit int) model.NodeState {
	message := s.Message
	s = State(s, limit)
	s.Message = message

	return s
}

// Problems returns problems as one line of text: the first ones, and how many
// more there are.
func Problems(problems model.Problems) string {
	var out strings.Builder
	for i, p := range problems.Sorted() {
		text := strings.ReplaceAll(Text(p.Error()), "\n", "; ")
		if i > 0 && out.Len()+len(text) > maxText {
			fmt.Fprintf(&out, "; and %d more", problems.Count()-i)
			break
		}
		if i > 0 {
			out.WriteString("; ")
		}
		out.WriteString(text)
	}

	return out.String()
}
