package web

import (
	"context"
	"net/http"
	"time"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/page"
)

// control is the page of what operators wrote about nodes and groups.
func (s *site) control(r *http.Request) screen {
	search, times := searchOf(r), timesOf(r)

	return screen{
		Frame: s.frame("Audit", "Audit"), controls: page.AuditControls("/audit/nodes", "Part of a node, a group, a name or a text", search, times),
		content: func(ctx context.Context, now time.Time) (content, error) {
			all, more, err := s.Source.Control(reader(ctx, r))
			if err != nil {
				return content{}, err
			}

			return shown(page.Control(view.ControlChanges(within(all, times), search), more, search, now))
		},
	}
}
