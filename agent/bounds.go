package agent

import (
	"encoding/json"
	"fmt"
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
	maxError  = 4 << 10
	// maxText is how long a text of the node's state may be.
	maxText = 1 << 10
)

// cutMark ends what was cut.
const cutMark = " … (cut)"

// maxDocument is how long a report or a state may be, encoded.
func (a *Agent) maxDocument() int {
	if p, ok := a.opts.Publisher.(MessageBound); ok {
		if most := p.MaxMessage(); most > 0 {
			return int(min(maxReport, max(most-envelope, envelope)))
		}
	}

	return maxReport
}

// cut bounds a text to what the state of a node may say of one thing.
func cut(s string) string { return cutTo(s, maxText) }

// cutTo bounds a text to a number of bytes in JSON.
func cutTo(s string, most int) string {
	size := 0
	for i, r := range s {
		if size += encodedLen(r); size > most {
			return strings.ToValidUTF8(s[:i], "") + cutMark
		}
	}

	return s
}

// encodedLen gives how many bytes a character has in JSON at most.
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

// fits says that a document is not longer than limit, encoded.
func fits(document any, limit int) bool {
	b, err := json.Marshal(document)

	return err == nil && len(b) <= limit
}

// boundErrors bounds a list of errors: the first ones, and how many more there are.
func boundErrors(errs []string, limit int) []string {
	most := min(maxError, limit*3/4/maxErrors)
	out := make([]string, 0, min(len(errs), maxErrors+1))
	for _, e := range errs[:min(len(errs), maxErrors)] {
		out = append(out, cutTo(e, most))
	}
	if more := len(errs) - maxErrors; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}

	return out
}

// boundTransaction gives a transaction that fits into a message: its status and
// properties are left out, its diffs and what else is long is cut.
func boundTransaction(t *model.Transaction, limit int) *model.Transaction {
	if rawSize(t) <= limit && fits(t, limit) {
		return t
	}
	short := *t
	short.Properties, short.Status = nil, nil
	short.NoopMessage, short.SkipReason = cut(t.NoopMessage), cut(t.SkipReason)
	short.UnmetRequirements = t.UnmetRequirements[:min(len(t.UnmetRequirements), maxErrors)]
	short.WouldRefresh = t.WouldRefresh[:min(len(t.WouldRefresh), maxErrors)]
	short.Errors = boundErrors(t.Errors, limit/4)
	changes, checks := t.Changes[:min(len(t.Changes), maxErrors)], t.HealthCheck[:min(len(t.HealthCheck), maxErrors)]
	// A change has four texts and some words, and all of them have a third of it.
	most := min(maxText, limit/3/(5*max(len(changes), 1)))
	short.Changes, short.HealthCheck = make([]model.Change, 0, len(changes)), make([]model.HealthResult, 0, len(checks))
	for _, c := range changes {
		c.Diff, c.From, c.To, c.Message = cutTo(c.Diff, most), cutTo(c.From, most), cutTo(c.To, most), cutTo(c.Message, most)
		short.Changes = append(short.Changes, c)
	}
	most = min(maxText, limit/8/max(len(checks), 1))
	for _, c := range checks {
		c.Output = cutTo(c.Output, most)
		short.HealthCheck = append(short.HealthCheck, c)
	}

	return &short
}

// rawSize gives how long the texts of a transaction are at least, without making
// a copy of what may be large.
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

// boundState gives a state that fits into a message: the texts about manifests
// become shorter until it does. It changes the manifests of s.
func boundState(s model.NodeState, limit int) model.NodeState {
	for most := maxText / 4; !fits(s, limit) && most > 0; most /= 4 {
		for key, m := range s.Manifests {
			m.Late, m.Error = cutTo(m.Late, most), cutTo(m.Error, most)
			s.Manifests[key] = m
		}
	}

	return s
}
