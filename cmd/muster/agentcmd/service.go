package agentcmd

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/agent/drift"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/resources/host/writers"
)

// serviceRetry is the wait between two attempts to serve. A new connection ends it.
const serviceRetry = 5 * time.Second

// nodeService answers requests to a node, and accepts queued commands.
type nodeService struct {
	agent     *agent.Agent
	requests  requests.Client
	log       *slog.Logger
	connected tasks.Signal
	// groupsChanged signals a change of the node's groups.
	groupsChanged tasks.Signal
}

// run serves until ctx ends, and retries after an error: NATS may be unreachable at any time.
func (s *nodeService) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := s.serve(ctx); err != nil {
			s.log.WarnContext(ctx, "cannot answer requests, will retry", "error", err)
			select {
			case <-time.After(serviceRetry):
			case <-s.connected:
				s.agent.Connected()
			case <-s.groupsChanged:
			case <-ctx.Done():
			}
		}
	}
}

// serve serves the current groups, until they change.
func (s *nodeService) serve(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	config := s.agent.Config()
	ended := make(chan error, 2)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	all.Go(func() { ended <- s.answer(ctx, config) })
	all.Go(func() {
		options := requests.CommandOptions{Node: config.Node, Groups: config.Groups, Log: s.log}
		ended <- s.requests.Commands(ctx, options, func(ctx context.Context, c requests.Command) error {
			if c.Refused != nil {
				s.agent.Requests().Refuse(ctx, c.ID, c.Refused)
				return nil
			}
			return s.agent.Requests().Command(ctx, c.Sender, c.ID, c.Data)
		})
	})
	for {
		select {
		case <-s.connected:
			s.agent.Connected()
		case <-s.groupsChanged:
			return nil
		case err := <-ended:
			return err
		}
	}
}

func (s *nodeService) answer(ctx context.Context, config agent.Config) error {
	return s.requests.Serve(ctx, requests.ServeOptions{
		Node: config.Node, Groups: config.Groups, Version: cli.Version(), Log: s.log,
		Ensure: s.agent.Requests().Ensure, Run: s.agent.Requests().Run, Preview: s.agent.Previews().Preview,
		Status: s.guarded("status", func(ctx context.Context, request []byte) (any, error) {
			return s.agent.Requests().Status(ctx, request)
		}),
		Facts: s.guarded("facts", func(ctx context.Context, _ []byte) (any, error) { return s.agent.Facts(ctx) }),
		Ping:  s.guarded("ping", func(context.Context, []byte) (any, error) { return s.agent.State(), nil }),
	})
}

// guarded turns a panic into an error, because a request must not end the agent.
func (s *nodeService) guarded(verb string, answer requests.Answer) requests.Answer {
	return func(ctx context.Context, request []byte) (out any, err error) {
		err = tasks.Guard(s.log, "answering a request for "+verb, func() (err error) {
			out, err = answer(ctx, request)
			return err
		})
		return out, err
	}
}

func listen(ctx context.Context, paths []string) (drift.Writers, error) {
	l, err := writers.Listen(ctx, paths)
	if err != nil {
		return nil, err // not a non-nil interface with a nil pointer
	}

	return l, nil
}
