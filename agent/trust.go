package agent

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/agent/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// policy returns the signature policy.
func (s *settings) policy() signed.Policy {
	c := s.get()

	return c.Policy()
}

// warnUnsignable logs the families without a trusted key that may sign for them. They accept no values.
func (s *settings) warnUnsignable(ctx context.Context, log *slog.Logger) {
	c := s.get()
	if families := c.Unsignable(); len(families) > 0 {
		log.WarnContext(ctx, "no key of trust.keys may sign for these families, which accept nothing", "families", strings.Join(families, ","))
	}
}

// opener returns the function that opens the messages of requests.
func (s *settings) opener(g *desired.Gate) func(context.Context, []byte, signed.Action) (requests.Opened, error) {
	return func(ctx context.Context, data []byte, action signed.Action) (requests.Opened, error) {
		c := s.get()
		opened, err := g.Request(ctx, data, action, model.Families(c.Node, c.Groups))

		return requests.Opened(opened), err
	}
}

// untrustedEvery is the minimum time between two reports about untrusted requests. Each sender receives an
// answer.
const untrustedEvery = time.Minute

// untrusted reports requests without the required signatures.
type untrusted struct {
	report *reporting.Reporter
	log    *slog.Logger

	mu sync.Mutex
	// last is the time of the last report. more is the number of later requests.
	last time.Time
	more int
}

// note logs and reports the reason for a rejection.
func (u *untrusted) note(why string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if now.Sub(u.last) < untrustedEvery {
		u.more++
		return
	}
	u.log.Warn("request rejected", "error", why, "rejected_since_last", u.more)
	u.last, u.more = now, 0
	u.report.Node("", model.NodeRefused, "request: "+bounds.Text(strings.TrimPrefix(why, "request: ")))
}
