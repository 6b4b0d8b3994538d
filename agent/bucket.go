package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/model"
)

// bucketNotices are what was reported about the bucket of assignments.
type bucketNotices struct {
	// problem is why it was not trusted last, invalid and unreadable are the keys that
	// were reported.
	problem             string
	invalid, unreadable []string
}

// note reports, once, that the bucket cannot be trusted, and which of its keys are
// invalid.
func (b *bucketNotices) note(ctx context.Context, s model.Sync, m *manifests) {
	problem, away := "", ""
	if len(s.Kept) > 0 {
		problem = "the bucket was recreated or lost its content, the last known manifests stay in force: " + strings.Join(s.Kept, ", ")
	}
	if s.Err != nil {
		away = s.Err.Error()
	}
	m.status.SetMessage(bounds.Text(cmp.Or(problem, away, deniedSubscription(s.Denied), unreadableKeys(s.Unreadable), invalidKeys(s.Invalid), refusedAnswers(s.Refused))))
	b.invalid = reportKeys(ctx, m, b.invalid, s.Invalid, invalidKeys)
	b.unreadable = reportKeys(ctx, m, b.unreadable, s.Unreadable, unreadableKeys)
	if problem == b.problem {
		return
	}
	b.problem = problem
	if problem == "" {
		m.log.InfoContext(ctx, "bucket restored")
		return
	}
	m.log.ErrorContext(ctx, "bucket not trusted, assignments kept", "problem", problem)
	m.report.Node("", model.NodeRefused, "the last good manifests stay in force: "+bounds.Text(problem))
}

// reportKeys reports the keys of now that are not among those before, and returns now.
func reportKeys(ctx context.Context, m *manifests, before, now []string, describe func([]string) string) []string {
	for _, key := range now {
		if !slices.Contains(before, key) {
			why := describe([]string{key})
			m.log.ErrorContext(ctx, "assignment rejected", "key", key, "error", why)
			m.report.Node("", model.NodeRefused, why)
		}
	}

	return now
}

// unreadableKeys describes keys whose headers cannot be read, empty for none.
func unreadableKeys(keys []string) string {
	if len(keys) == 0 {
		return ""
	}

	return bounds.Text("stored with headers that cannot be read, what was in force stays so: " + strings.Join(keys, ", ") + " (put it again without them, or remove it)")
}

// deniedSubscription describes a denied subscription and what it means, empty for none.
func deniedSubscription(denied error) string {
	if denied == nil {
		return ""
	}

	return "a change may be noticed late, and a request not at all: " + denied.Error() + " (muster fleet permissions prints what the node needs)"
}

// invalidKeys describes keys that are none of an assignment, empty for none.
func invalidKeys(keys []string) string {
	if len(keys) == 0 {
		return ""
	}

	return bounds.Text("not a key of an assignment: " + strings.Join(keys, ", ") + " (write node.<node>.<name> or group.<group>.<name>; muster fleet rm removes it)")
}

// refusedAnswers describes answers that were refused, empty for none.
func refusedAnswers(count uint64) string {
	if count == 0 {
		return ""
	}

	return fmt.Sprintf("answers of NATS refused since the agent started: %d; they were not of what was asked for, or claim to come from elsewhere", count)
}
