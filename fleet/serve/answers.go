package serve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet/ask"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/page"
	"github.com/musterfleet/muster/model"
)

const (
	// maxAnswerBytes limits the bytes that are read from the stream for one request: first of all nodes together, then of
	// single nodes.
	maxAnswerBytes = 32 << 20
	// maxNodeBytes limits the bytes that are read of one node, if all nodes together exceed maxAnswerBytes.
	maxNodeBytes = 1 << 20
	// answersFor is the lifetime of a request in the cache of answers, and maxAnswered its maximum number of requests.
	answersFor, maxAnswered = 30 * time.Second, 4
	// answersBefore is how long before the first known answer reading starts, because the clocks of servers differ.
	answersBefore = 10 * time.Second
)

// Answers reads the answers to a request from the stream of reports. It reads the nodes one by one if all together
// exceed maxAnswerBytes, so a node that floods the stream does not hide the answers of others.
//
// The cache misses when the request has new answers.
func (s *source) Answers(ctx context.Context, r view.RequestDetail) (view.Answers, error) {
	key := fmt.Sprintf("%t %s %d %s", r.IsRun(), r.ID, r.Answers, r.Last)

	return s.answers.Get(ctx, key, func(ctx context.Context) (view.Answers, error) {
		return through(ctx, s, func() (view.Answers, error) { return s.readAnswers(ctx, r) })
	})
}

func (s *source) readAnswers(ctx context.Context, r view.RequestDetail) (view.Answers, error) {
	a := newAnswerReader(s.Reports, r)
	full, err := a.read(ctx, model.ReportRange{}, maxAnswerBytes)
	if err != nil || !full {
		return a.out, err
	}

	return a.out, a.readNodes(ctx)
}

// answerReader collects the answers to a request. bytes and total count the bytes that it read, by node and together.
type answerReader struct {
	stream  Reports
	request view.RequestDetail
	results *ask.Results
	out     view.Answers
	bytes   map[string]int
	total   int
}

func newAnswerReader(stream Reports, r view.RequestDetail) *answerReader {
	protocol := model.ProtocolEnsureResponse
	if r.IsRun() {
		protocol = model.ProtocolRunResponse
	}

	return &answerReader{stream: stream, request: r, results: ask.NewResults(r.ID, protocol, nil), out: view.Answers{Answers: []view.Answer{}}, bytes: map[string]int{}}
}

func (a *answerReader) note(format string, args ...any) {
	if a.out.Incomplete != "" {
		a.out.Incomplete += "; "
	}
	a.out.Incomplete += fmt.Sprintf(format, args...)
}

// read reads the answers in a range until the answers of its nodes are complete. full reports that it read more bytes
// than limit before.
func (a *answerReader) read(ctx context.Context, in model.ReportRange, limit int) (full bool, err error) {
	in.Kind, in.Since = model.KindEnsure, a.request.First.Add(-answersBefore)
	read := 0
	for m, err := range a.stream.Messages(ctx, in) {
		if err != nil {
			return false, err
		}
		for _, report := range m.Reports {
			a.bytes[report.Node] += m.Size
			if answer, is := a.results.Add(report); is {
				a.out.Answers = append(a.out.Answers, newAnswer(report.Node, m.Stored, answer))
			}
		}
		a.total += m.Size
		read += m.Size
		switch {
		case in.Node != "" && a.results.HasAnswer(in.Node):
			return false, nil
		case len(a.out.Answers) >= a.request.Answers && m.Stored.After(a.request.Last):
			return false, nil
		case read > limit:
			return true, nil
		}
	}

	return false, nil
}

func (a *answerReader) readNodes(ctx context.Context) error {
	r := a.request
	nodes := slices.DeleteFunc(slices.Clone(r.Answered), a.results.HasAnswer)
	slices.SortStableFunc(nodes, func(x, y string) int { return cmp.Compare(a.bytes[x], a.bytes[y]) })
	var flooding []string
	for i, node := range nodes {
		if a.total > 2*maxAnswerBytes {
			a.note("reading ended after %d MiB; the answers of %s are not shown", 2*maxAnswerBytes>>20, page.Count(len(nodes)-i, "node"))
			break
		}
		full, err := a.read(ctx, model.ReportRange{Node: node}, maxNodeBytes)
		if err != nil {
			return err
		}
		if full && !a.results.HasAnswer(node) {
			flooding = append(flooding, node)
		}
	}
	if len(flooding) > 0 {
		a.note("%s sent more than %d MiB of answers to all requests since %s, and the rest is not shown", some(flooding), maxNodeBytes>>20, clock(r.First))
	}
	if len(r.Answered) < r.Answers {
		a.note("reading ended after %d MiB of answers to all requests since %s", maxAnswerBytes>>20, clock(r.First))
	}

	return nil
}

func some(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}

	return fmt.Sprintf("%s and %d more (the first by bytes)", strings.Join(names[:most], ", "), len(names)-most)
}

func newAnswer(node string, stored time.Time, r model.EnsureResponse) view.Answer {
	out := view.Answer{Node: node, Time: stored, Outcome: view.OutcomeOf(r), Text: view.DescribeAnswer(r), Runs: r.Runs}
	if r.State == nil {
		return out
	}
	out.Duration = r.State.Duration
	out.Stdout, _ = r.State.Outputs["stdout"].(string)
	out.Stderr, _ = r.State.Outputs["stderr"].(string)
	out.ExitCode = view.ExitCode(r.State)

	return out
}
