package ask

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// Pinger asks nodes whether they are there.
type Pinger interface {
	// Ping asks the nodes of a target, and yields who answers, as the answers come, until
	// ctx ends or nothing more can come.
	Ping(ctx context.Context, target fleet.Target) iter.Seq2[string, error]
}

// Pong is the answer of a node that is there.
type Pong struct {
	Node string `json:"node"`
	// Took is the time from the question to the answer.
	Took model.Duration `json:"took"`
}

// Pinged is who answered.
type Pinged struct {
	// Answers are in the order in which they came.
	Answers []Pong `json:"answers"`
	// Missing are the nodes that did not answer, by name.
	Missing []string `json:"missing,omitempty"`
}

// Ping asks the nodes of targets whether they are there, until the named ones and the known
// members of groups have answered, or ctx ends, which is no error; where no node is known,
// whoever answers until then counts. onAnswer, unless it is nil, gets each answer as it
// comes. It returns who answered with an error too.
func Ping(ctx context.Context, by Pinger, targets []fleet.Target, known []model.Node, onAnswer func(Pong)) (Pinged, error) {
	ctx, cancel := context.WithCancel(ctx)
	var senders sync.WaitGroup
	defer senders.Wait()
	defer cancel()
	began, answers := time.Now(), make(chan answer[string])
	senders.Go(func() {
		all := make([]question[string], len(targets))
		for i, t := range targets {
			all[i] = question[string]{t.String(), by.Ping(ctx, t)}
		}
		askAll(ctx, all, answers)
	})
	missing := expectedOf(targets, known)
	awaited, out, here := len(missing) > 0, Pinged{Answers: []Pong{}}, map[string]bool{}
	var errs []error
	for a := range answers {
		if a.err != nil && ctx.Err() == nil {
			errs = append(errs, a.err)
		}
		if a.err != nil || here[a.response] {
			continue
		}
		p := Pong{Node: a.response, Took: model.Duration(time.Since(began))}
		if out.Answers = append(out.Answers, p); onAnswer != nil {
			onAnswer(p)
		}
		here[p.Node] = true
		if delete(missing, p.Node); awaited && len(missing) == 0 {
			break
		}
	}
	out.Missing = slices.Sorted(maps.Keys(missing))

	return out, errors.Join(errs...)
}
