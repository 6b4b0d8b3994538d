package agent

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/telemetry"
)

// bucketNotices are the reported problems of the bucket of assignments.
type bucketNotices struct {
	status *status.Node
	report *reporting.Reporter
	log    *slog.Logger
	// problem is the last reason for distrust. invalid and unreadable are the reported keys.
	problem             string
	invalid, unreadable []string
	// rejected logs keys. Any user who may write keys can cause these messages.
	rejected telemetry.RateLimitedLog
	// untrusted logs lost keys. The server can cause these messages.
	untrusted telemetry.RateLimitedLog
}

// note reports once that the bucket cannot be trusted, and which keys are invalid.
func (b *bucketNotices) note(ctx context.Context, s model.Sync) {
	problem, away := "", ""
	if len(s.Kept) > 0 {
		problem = "the bucket was recreated or lost its content, the last known manifests stay in force: " + someOf(s.Kept)
	}
	if s.Err != nil {
		away = s.Err.Error()
	}
	b.status.SetMessage(together(problem, away, deniedSubscription(s.Denied), unreadableKeys(s.Unreadable), invalidKeys(s.Invalid), refusedAnswers(s.Refused)), s.Err != nil)
	// After the message, so that a state with a group always has the group's problem.
	b.status.SetRead(s.Known, s.Failed)
	b.invalid = b.reportKeys(ctx, b.invalid, s.Invalid, invalidKeys)
	b.unreadable = b.reportKeys(ctx, b.unreadable, s.Unreadable, unreadableKeys)
	if problem == b.problem {
		return
	}
	b.problem = problem
	if problem == "" {
		b.log.InfoContext(ctx, "bucket restored")
		return
	}
	if !b.untrusted.Log(ctx, b.log, slog.LevelError, "bucket not trusted, assignments stay active", "problem", problem) {
		return
	}
	b.report.Node("", model.NodeRefused, "the last good manifests stay in force: "+bounds.Text(problem))
}

// together joins the problems, each of limited length. A remedy that several problems share stays once: in
// the first problem that contains it, otherwise at the end.
func together(problems ...string) string {
	problems = slices.DeleteFunc(problems, func(text string) bool { return text == "" })
	for i, text := range problems {
		remedy := remedyOf(text)
		isLater := slices.ContainsFunc(problems[i+1:], func(later string) bool { return remedyOf(later) == remedy })
		isEarlier := slices.ContainsFunc(problems[:i], func(earlier string) bool { return strings.Contains(earlier, strings.Trim(remedy, " ()")) })
		if remedy != "" && (isLater || isEarlier) {
			text = strings.TrimSuffix(text, remedy)
		}
		problems[i] = bounds.Text(text)
	}

	return strings.Join(problems, "; ")
}

// remedyOf returns the remedy in parentheses at the end of a text, empty for none.
func remedyOf(text string) string {
	at := strings.LastIndex(text, " (")
	if at < 0 || !strings.HasSuffix(text, ")") {
		return ""
	}

	return text[at:]
}

// reportKeys reports the new keys of now in one report, and returns now. Both lists are sorted.
func (b *bucketNotices) reportKeys(ctx context.Context, before, now []string, describe func([]string) string) []string {
	added := slices.DeleteFunc(slices.Clone(now), func(key string) bool {
		_, reported := slices.BinarySearch(before, key)
		return reported
	})
	if len(added) > 0 {
		why := describe(added)
		b.rejected.Log(ctx, b.log, slog.LevelError, "assignment rejected", "key", someOf(added), "error", why)
		b.report.Node("", model.NodeRefused, why)
	}

	return now
}

// someOf returns the first keys and the number of the others, because an operator of one group may write any
// number.
func someOf(keys []string) string {
	const most = 5
	if len(keys) <= most {
		return strings.Join(keys, ", ")
	}

	return fmt.Sprintf("%s and %d more", strings.Join(keys[:most], ", "), len(keys)-most)
}

func unreadableKeys(keys []string) string {
	if len(keys) == 0 {
		return ""
	}

	return bounds.Text("stored with unreadable headers, the last good version stays active: " + someOf(keys) + " (put it again without them, or remove it)")
}

// deniedSubscription describes a denied subscription and what it means, empty for none.
func deniedSubscription(denied error) string {
	if denied == nil {
		return ""
	}

	return "a change may be noticed late, and a request not at all: " + denied.Error()
}

func invalidKeys(keys []string) string {
	if len(keys) == 0 {
		return ""
	}

	return bounds.Text("not a key of an assignment: " + someOf(keys) + " (write node.<node>.<name> or group.<group>.<name>; muster fleet rm removes it)")
}

func refusedAnswers(count uint64) string {
	if count == 0 {
		return ""
	}

	return fmt.Sprintf("answers of NATS refused since the agent started: %d; they belong to other questions or are forged", count)
}
