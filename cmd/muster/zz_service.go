package main

import (
	"context"
	"log/slog"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/kvstore"
)

type nodeService struct {
	agent     *agent.Agent
	store     *kvstore.Store
	config    agent.Config
	connected chan struct{}
	log       *slog.Logger
}

func (s *nodeService) run(ctx context.Context) error {
	for {
		select {
		case <-s.connected:
			s.agent.Connected()
		case <-ctx.Done():
			return nil
		}
	}
}
