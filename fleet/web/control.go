package web

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet/describe"
	"github.com/musterfleet/muster/fleet/web/page"
	"github.com/musterfleet/muster/model"
)

// control is the page of what operators wrote about nodes and groups.
func (s *site) control(r *http.Request) screen {
	search := searchOf(r)

	return screen{
		Frame: s.frame("Audit", "Audit"), controls: page.SearchControls("Audit", "/audit/nodes", "Part of a node, a group, a name or a text", search, false),
		content: func(ctx context.Context, now time.Time) (content, error) {
			all, err := s.Source.Control(ctx)
			if err != nil {
				return content{}, err
			}

			return shown(page.Control(changesOf(all, search), search, now))
		},
	}
}

// changesOf returns the changes that have a text.
func changesOf(all []model.Entry, search string) []page.ControlChange {
	search = strings.ToLower(search)
	var out []page.ControlChange
	for _, c := range all {
		row := page.ControlChange{Key: c.Key, Revision: c.Revision, Time: c.Time, By: c.By, Deleted: c.Deleted, Refused: c.Refused != ""}
		row.Text, row.Signed = describe.Control(c)
		// What was written before names were: a pause has one of its own.
		if p, err := model.DecodePause(c.Value); err == nil {
			row.By = cmp.Or(row.By, p.By)
		}
		if strings.Contains(strings.ToLower(strings.Join([]string{row.Key, row.By, row.Text}, " ")), search) {
			out = append(out, row)
		}
	}

	return out
}
