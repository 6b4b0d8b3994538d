package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/page"
	"github.com/musterfleet/muster/model"
)

func (s *site) run(r *http.Request) screen {
	d := page.RunData{Node: r.PathValue("node"), ID: r.PathValue("run"), Show: page.Shown(r.URL.Query().Get("show"))}

	return screen{
		Frame: s.frame("Run on "+d.Node, "Nodes"), live: true, pace: runPace,
		controls: page.Heading("Run on "+d.Node, false, page.Link{Text: "Nodes", URL: "/nodes"}, page.Link{Text: d.Node, URL: page.NodeURL(d.Node)}),
		content: func(ctx context.Context, now time.Time) (content, error) {
			d := d
			var err error
			d.Detail, err = s.Source.Run(ctx, d.Node, d.ID)
			switch {
			case errors.Is(err, model.ErrNotFound):
				return absent("run", d.ID, "The stream of reports has nothing of it: reports are kept for a time.", page.Link{Text: "Show the events of the node", URL: page.EventsURL(view.EventQuery{Node: d.Node})}), nil
			case err != nil:
				return content{}, err
			}
			d.Detail.Progress = s.Model.Progress()
			d.SourceFile, d.Source = s.manifestOf(ctx, d.Detail)

			// A run whose summary is known changes no more: its stream of reports is not read again.
			return content{page.Run(d, now), http.StatusOK, d.Detail.Run != nil || d.Detail.Request != ""}, nil
		},
	}
}

// manifestOf returns the lines of the manifest of a run where errors have the place of a line in it, and
// the file that they name. That is so for a manifest that is assigned as it is, while the bucket has the
// revision; where it is not, there are no lines.
func (s *site) manifestOf(ctx context.Context, d view.RunDetail) (file string, lines []string) {
	if d.Run == nil || d.Run.OK() || d.Run.Revision == 0 {
		return "", nil
	}
	all, err := s.Source.History(ctx, d.Run.Manifest)
	if err != nil {
		return "", nil // it is shown without
	}
	for _, e := range all {
		text := string(e.Value)
		if e.Revision == d.Run.Revision && e.Key == d.Run.Manifest && assign.Readable(e.Key, e.Value) == text {
			return e.Key, strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		}
	}

	return "", nil
}
