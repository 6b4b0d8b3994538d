package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
)

// DescribeReport returns the subject of a report in a word or two, and a short description, empty if the outcome is
// enough.
func DescribeReport(r model.Report) (subject, summary string) {
	switch r.Type {
	case model.ProtocolTransaction:
		t := decodeOrZero[model.Transaction](r.Data)
		if len(t.Errors) > 0 {
			return t.Label(), DescribeTransaction(&t)
		}
		return t.Ref().String(), DescribeTransaction(&t)
	case model.ProtocolEnsureResponse:
		subject, response := "ensure", decodeOrZero[model.EnsureResponse](r.Data)
		if response.State != nil {
			subject += " " + response.State.Ref().String()
		}
		return subject, DescribeAnswer(response)
	case model.ProtocolRunResponse:
		return "run", DescribeAnswer(decodeOrZero[model.EnsureResponse](r.Data))
	case model.ProtocolHealth:
		h := decodeOrZero[model.HealthReport](r.Data)
		if h.Output == "" && h.Was != "" {
			h.Output = "was " + string(h.Was)
		}
		return h.Resource.String() + " " + h.Check, h.Output
	case model.ProtocolNode:
		state := decodeOrZero[model.NodeState](r.Data)
		if state.Message == "" && state.Event == model.NodeStarted {
			state.Message = "muster " + state.Version
		}
		return "", state.Message
	case model.ProtocolRun:
		summary = DescribeRun(decodeOrZero[model.Run](r.Data))
	}
	if r.Manifest != "" && r.Revision != 0 {
		return fmt.Sprintf("%s@%d", r.Manifest, r.Revision), summary
	}

	return r.Manifest, summary
}

// SenderOf returns the unverified sender of the request that a report answers, empty for none.
func SenderOf(r model.Report) string {
	if r.Kind != model.KindEnsure {
		return ""
	}
	a := decodeOrZero[model.EnsureResponse](r.Data)
	if a.Sender == nil {
		return ""
	}

	return a.Sender.By
}

// decodeOrZero decodes a document. An invalid document is empty, and the report shows only its envelope.
func decodeOrZero[T any](data json.RawMessage) T {
	v, err := model.DecodeJSON[T](data)
	if err != nil {
		var none T
		return none
	}

	return *v
}

// maxUnchanged limits the named runs with unchanged results, because a node may write any number.
const maxUnchanged = 10

// DescribeRun describes a run in one line: counts, duration, errors.
func DescribeRun(r model.Run) string {
	text := r.Counts.Text() + " in " + r.Duration.Round(time.Millisecond).String()
	if r.Noop {
		text += " (noop)"
	}
	if r.Retry {
		text += ", tried again"
	}
	if !r.RetryAt.IsZero() {
		text += ", put off by a limit, the next until " + r.RetryAt.Local().Format(model.TimeFormat)
	}
	for _, u := range r.Unchanged[:min(len(r.Unchanged), maxUnchanged)] {
		text += fmt.Sprintf(", %d unchanged since %s", u.Transactions, runTime(u.RunID))
	}
	if more := len(r.Unchanged) - maxUnchanged; more > 0 {
		text += fmt.Sprintf(", others since %d more runs", more)
	}
	if len(r.Errors) > 0 {
		text += ": " + strings.Join(r.Errors, "; ")
	}

	return text
}

// runTime returns the start time of a run, from its id, with the id.
func runTime(id string) string {
	at, err := ksuid.Parse(id)
	if err != nil {
		return "run " + id
	}

	return at.Time().Local().Format(model.TimeFormat) + " (run " + id + ")"
}

// DescribeTransaction describes the result of a resource in a few words, with the time of a repair.
func DescribeTransaction(t *model.Transaction) string {
	text := describeResult(t)
	if d := t.Drift; d != nil && len(t.Errors) == 0 && !t.Refreshed {
		text += " (drift, repaired in " + model.ShortDuration(d.Latency) + ")"
	}

	return text
}

func describeResult(t *model.Transaction) string {
	switch {
	case len(t.Errors) > 0:
		return strings.Join(t.Errors, "; ")
	case len(t.UnmetRequirements) > 0:
		refs := make([]string, len(t.UnmetRequirements))
		for i, ref := range t.UnmetRequirements {
			refs[i] = ref.String()
		}
		return "needs " + strings.Join(refs, ", ")
	case t.NoopMessage != "":
		return t.NoopMessage
	case t.SkipReason != "":
		return t.SkipReason
	}
	if code := exitCode(t); code != nil {
		return fmt.Sprintf("ran (exit %d)", *code)
	}
	var words []string
	for i, c := range t.Changes {
		word, detail := cmp.Or(c.Message, c.Action), ""
		if c.Property != "" && c.Property != "ensure" && c.Property != "content" && c.To != "" {
			detail = c.Property + " " + c.From + " -> " + c.To
		}
		if detail != "" && c.Message == "" && i > 0 && t.Changes[i-1].Action == c.Action {
			// The count includes the message before it.
			if open, has := strings.CutSuffix(words[len(words)-1], ")"); has {
				words[len(words)-1] = open + ", " + detail + ")"
				continue
			}
		}
		if detail != "" {
			word += " (" + detail + ")"
		}
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}

	return strings.Join(words, ", ")
}

// exitCode returns the exit code of a command that ran, or nil.
func exitCode(t *model.Transaction) *int {
	if t.Noop || len(t.Status) == 0 {
		return nil
	}

	return decodeOrZero[struct {
		ExitCode *int `json:"exit_code"`
	}](t.Status).ExitCode
}

// DescribeAnswer describes the result of an ensure or run request in a few words.
func DescribeAnswer(r model.EnsureResponse) string {
	switch {
	case r.Error != "":
		return r.Error
	case r.State != nil:
		return DescribeTransaction(r.State)
	case r.Protocol == model.ProtocolRunResponse && r.Phase.Final() && r.Phase != model.EnsureExpired:
		return describeRequested(r.Runs)
	default:
		return string(r.Phase)
	}
}

// OutcomeOf returns the outcome of an answer.
func OutcomeOf(r model.EnsureResponse) model.Outcome {
	switch {
	case r.State != nil:
		return r.State.Outcome()
	case r.Phase == model.EnsureCancelled:
		return model.OutcomeNotRun
	case r.Error != "":
		return model.OutcomeFailed
	case r.Protocol == model.ProtocolRunResponse && r.Phase == model.EnsureDone:
		return model.OutcomeOf(r.Runs)
	default:
		return model.Outcome(r.Phase)
	}
}

// describeRequested counts the manifests of a run request, with the first error.
func describeRequested(all []model.RequestedRun) string {
	text := DescribeRuns(all)
	if i := slices.IndexFunc(all, func(r model.RequestedRun) bool { return !r.OK() }); i >= 0 {
		text += " (" + all[i].Manifest + ": " + cmp.Or(all[i].Error, string(all[i].Outcome)) + ")"
	}

	return text
}

// DescribeRuns counts the manifests of a run request, for a display with the errors beside it.
func DescribeRuns(all []model.RequestedRun) string {
	changed, noop, failed, skipped := 0, 0, 0, 0
	for _, r := range all {
		switch {
		case !r.OK():
			failed++
		case r.Outcome == model.OutcomeSkipped:
			skipped++
		case r.Counts.Made() > 0:
			changed++
		case r.Counts.Noop > 0:
			noop++
		}
	}
	text := fmt.Sprintf("%d manifests", len(all))
	switch len(all) {
	case 0:
		return "nothing is assigned that applies"
	case 1:
		text = "1 manifest"
	}
	for _, more := range []struct {
		count int
		word  string
	}{{changed, "changed"}, {noop, "would change"}, {failed, "failed"}, {skipped, "skipped"}} {
		if more.count > 0 {
			text += fmt.Sprintf(", %d %s", more.count, more.word)
		}
	}

	return text
}
