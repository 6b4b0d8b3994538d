package ask

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/model"
)

// Amount is a number of nodes, or a part of all of them.
type Amount struct {
	count   int
	percent bool
}

// ParseAmount parses a number such as 50, or a percentage such as 10%.
func ParseAmount(text string) (Amount, error) {
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || percent && n > 100 {
		return Amount{}, fmt.Errorf("%q: neither a number of nodes such as 50 nor a percentage such as 10%%", text)
	}

	return Amount{n, percent}, nil
}

// Of returns how many of a number of nodes it is, rounded down.
func (a Amount) Of(nodes int) int {
	if a.percent {
		return nodes * a.count / 100
	}

	return a.count
}

// BatchLimits sets the batch size and the tolerated failures.
type BatchLimits struct {
	// Size is how many nodes are in a batch; at least one is.
	Size Amount
	// MaxFailures is how many nodes may fail before the next batch; nil is any number.
	MaxFailures *Amount
}

// Batch is a part of the nodes.
type Batch struct {
	// Number is 1 for the first of Of.
	Number, Of int
	Nodes      []string
}

// SendBatches sends to all nodes, batch by batch: the next one when send has returned the answers of the
// one before. It stops at an error of send, when ctx ends, and once more nodes than MaxFailures
// have failed, did not answer or did not finish. Those that were not asked are in the result, which
// comes with an error too.
func SendBatches(ctx context.Context, nodes []string, by BatchLimits, send func(context.Context, Batch) (*Ensured, error)) (*Ensured, error) {
	size := max(by.Size.Of(len(nodes)), 1)
	all, out := slices.Collect(slices.Chunk(nodes, size)), &Ensured{Answers: []model.EnsureResponse{}}
	for i, part := range all {
		result, err := send(ctx, Batch{i + 1, len(all), part})
		if result == nil {
			out.NotAsked = slices.Concat(all[i:]...)
			return out, err
		}
		out.Add(result)
		if err != nil || ctx.Err() != nil || i+1 == len(all) {
			out.NotAsked = slices.Concat(all[i+1:]...)
			return out, err
		}
		if failed := out.Failures(); by.MaxFailures != nil && failed > by.MaxFailures.Of(len(nodes)) {
			out.NotAsked = slices.Concat(all[i+1:]...)
			out.Stopped = fmt.Sprintf("stopped after batch %d of %d: %d failed or did not answer, at most %d may", i+1, len(all), failed, by.MaxFailures.Of(len(nodes)))
			return out, nil
		}
	}

	return out, nil
}
