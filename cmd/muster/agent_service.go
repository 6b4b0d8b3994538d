package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/kvstore/requests"
)

// serviceRetry is how long a node waits before it offers its service again
// after that failed; a new connection ends the wait.
const serviceRetry = 5 * time.Second

// nodeService answers what is asked of a node by subject, and takes the
// commands that waited for it.
type nodeService struct {
	agent     *agent.Agent
	store     *natsStore
	log       *slog.Logger
	connected <-chan struct{}
	// regrouped says that the node is in other groups now.
	regrouped chan struct{}
}

// run serves until ctx ends. What fails is tried again: NATS may be away, now
// or from the start.
func (s *nodeService) run(ctx context.Context) {
	up := make(chan struct{}, 1)
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { s.watchConnection(ctx, up) })
	for ctx.Err() == nil {
		if err := s.serve(ctx); err != nil {
			s.log.WarnContext(ctx, "requests cannot be answered, it is tried again", "error", err)
			s.pause(ctx, up)
		}
	}
}

// watchConnection tells the agent and whoever waits that NATS is there again.
func (s *nodeService) watchConnection(ctx context.Context, up chan<- struct{}) {
	for {
		select {
		case <-s.connected:
			s.agent.Connected()
			select {
			case up <- struct{}{}:
			default:
			}
		case <-ctx.Done():
			return
		}
	}
}

func (s *nodeService) pause(ctx context.Context, up <-chan struct{}) {
	timer := time.NewTimer(serviceRetry)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-up:
	case <-s.regrouped:
	case <-ctx.Done():
	}
}

// serve answers for the groups of now; it ends when they change.
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
		ended <- s.store.Commands(ctx, options, func(ctx context.Context, c requests.Command) error { return s.agent.Command(ctx, c.ID, c.Data) })
	})
	select {
	case <-s.regrouped:
		return nil
	case err := <-ended:
		return err
	}
}

// answer offers the micro service.
func (s *nodeService) answer(ctx context.Context, config agent.Config) error {
	return s.store.Serve(ctx, requests.ServeOptions{
		Node: config.Node, Groups: config.Groups, Version: version(), Log: s.log,
		Ensure: s.agent.Ensure,
		Status: func(ctx context.Context, request []byte) (any, error) { return s.agent.Status(ctx, request) },
		Facts:  func(ctx context.Context, _ []byte) (any, error) { return s.agent.Facts(ctx) },
		Ping:   func(context.Context, []byte) (any, error) { return s.agent.State(), nil },
	})
}

// regroup makes the service that of the node's groups of now.
func (s *nodeService) regroup() {
	select {
	case s.regrouped <- struct{}{}:
	default:
	}
}
