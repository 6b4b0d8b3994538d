package ask

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// Amount is a number or a percentage of nodes.
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

// Of returns the amount of a number of nodes, rounded down.
func (a Amount) Of(nodes int) int {
	if a.percent {
		return nodes * a.count / 100
	}

	return a.count
}

// BatchLimits sets the batch size and the tolerated failures.
type BatchLimits struct {
	// Size is the number of nodes of a batch, at least one.
	Size Amount
	// MaxFailures is the number of nodes that may fail before the next batch; nil is any number.
	MaxFailures *Amount
}

// sendBatches sends to all nodes, batch by batch. It stops at an error, when ctx ends, or once more nodes than MaxFailures
// failed, did not answer or did not finish. The result lists the nodes that it did not ask.
func (r *Request) sendBatches(ctx context.Context, nodes []string) (*Ensured, error) {
	size := max(r.Batches.Size.Of(len(nodes)), 1)
	all, out := slices.Collect(slices.Chunk(nodes, size)), &Ensured{Answers: []model.EnsureResponse{}}
	for i, part := range all {
		batch := fmt.Sprintf("batch %d of %d", i+1, len(all))
		if err := r.Network.Await(ctx, batch); err != nil {
			out.NotAsked = slices.Concat(all[i:]...)
			if ctx.Err() != nil {
				err = nil
			}
			return out, err
		}
		result, err := r.send(ctx, batch+": ", fleet.Targets(part, nil, false))
		out.Add(result)
		if err != nil || ctx.Err() != nil || i+1 == len(all) {
			out.NotAsked = slices.Concat(all[i+1:]...)
			return out, err
		}
		if failed := out.Failures(); r.Batches.MaxFailures != nil && failed > r.Batches.MaxFailures.Of(len(nodes)) {
			out.NotAsked = slices.Concat(all[i+1:]...)
			out.Stopped = fmt.Sprintf("stopped after batch %d of %d: %d failed or did not answer, at most %d may", i+1, len(all), failed, r.Batches.MaxFailures.Of(len(nodes)))
			return out, nil
		}
	}

	return out, nil
}
