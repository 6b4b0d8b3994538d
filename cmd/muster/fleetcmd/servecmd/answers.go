package servecmd

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/musterfleet/muster/fleet/describe"
	"github.com/musterfleet/muster/fleet/request"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore/reports"
	"github.com/musterfleet/muster/model"
)

const (
	// maxAnswerBytes limits the bytes that are read from the stream for one request.
	maxAnswerBytes = 32 << 20
	// answersFor is the lifetime of a request in the cache of answers, and maxAnswered its maximum number of requests.
	answersFor, maxAnswered = 30 * time.Second, 4
	// answersBefore is the time before the first known answer at which reading starts, because the times of servers in a
	// cluster differ.
	answersBefore = 10 * time.Second
)

// Answers reads the answers to a request from the stream of reports.
func (s source) Answers(ctx context.Context, r view.RequestRow) (view.Answers, error) {
	protocol := model.ProtocolEnsureResponse
	if r.IsRun() {
		protocol = model.ProtocolRunResponse
	}
	results, out, read := request.NewResults(r.ID, protocol, nil), view.Answers{Answers: []view.Answer{}}, 0
	for m, err := range reports.New(s.store).Messages(ctx, reports.Range{Kind: model.KindEnsure, Since: r.First.Add(-answersBefore)}) {
		if err != nil {
			return out, err
		}
		for _, report := range m.Reports {
			if answer, is := results.Add(report); is {
				out.Answers = append(out.Answers, newAnswer(report.Node, m.Stored, answer))
			}
		}
		if read += m.Size; read > maxAnswerBytes {
			out.Incomplete = fmt.Sprintf("reading ended after %d MiB of answers to all requests since %s", maxAnswerBytes>>20, clock(r.First))
			break
		}
		if len(out.Answers) >= r.Answers && m.Stored.After(r.Last) {
			break
		}
	}

	return out, nil
}

// Answers returns the answers to a request, or api.ErrBusy. The cache misses when the request has new answers.
func (g gated) Answers(ctx context.Context, r view.RequestRow) (view.Answers, error) {
	key := fmt.Sprintf("%t %s %d %s", r.IsRun(), r.ID, r.Answers, r.Last)

	return g.answers.Get(ctx, key, func(ctx context.Context) (view.Answers, error) {
		return through(ctx, g, func() (view.Answers, error) { return g.source.Answers(ctx, r) })
	})
}

// newAnswer returns the answer of a node.
func newAnswer(node string, stored time.Time, r model.EnsureResponse) view.Answer {
	out := view.Answer{Node: node, Time: stored, Outcome: describe.Outcome(r), Text: describe.Answer(r), Runs: r.Runs}
	if r.State == nil {
		return out
	}
	out.Duration = r.State.Duration
	out.Stdout, _ = r.State.Outputs["stdout"].(string)
	out.Stderr, _ = r.State.Outputs["stderr"].(string)
	out.ExitCode = exitCode(r.State)

	return out
}

// exitCode returns the exit code of a command, nil if no command ran.
func exitCode(t *model.Transaction) *int {
	var code int
	switch v := t.Outputs["exit_code"].(type) {
	case float64:
		code = int(v)
	case int:
		code = v
	default:
		var status struct {
			ExitCode *int `json:"exit_code"`
		}
		if t.Noop || json.Unmarshal(t.Status, &status) != nil {
			return nil
		}
		return status.ExitCode
	}

	return &code
}
