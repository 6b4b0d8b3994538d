package servecmd

import (
	"context"
	"fmt"
	"time"

	"github.com/musterfleet/muster/fleet/request"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore/reports"
	"github.com/musterfleet/muster/model"
)

const (
	// maxAnswerBytes is how much of the stream is read for the answers to one request.
	maxAnswerBytes = 32 << 20
	// answersFor is how long the answers to a request are kept after they were read, and maxAnswered for
	// how many requests.
	answersFor, maxAnswered = 30 * time.Second, 4
	// answersBefore is how long before the first known answer reading begins: servers of a cluster can
	// store answers in another order.
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
				out.Answers = append(out.Answers, view.NewAnswer(report.Node, m.Stored, answer))
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

// Answers returns the answers to a request, or api.ErrBusy. They are read again once there are others.
func (g gated) Answers(ctx context.Context, r view.RequestRow) (view.Answers, error) {
	key := fmt.Sprintf("%t %s %d %s", r.IsRun(), r.ID, r.Answers, r.Last)

	return g.answers.Get(ctx, key, func(ctx context.Context) (view.Answers, error) {
		return through(ctx, g, func() (view.Answers, error) { return g.source.Answers(ctx, r) })
	})
}
