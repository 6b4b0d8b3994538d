package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/aymanbagabas/go-udiff"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/fleet/web/page"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

func (s *site) overview(r *http.Request) screen {
	last := page.Last(r.URL.Query().Get("last"))

	return screen{
		Frame: s.frame("Overview", "Overview"), live: true, controls: page.Heading("Fleet", true),
		content: func(_ context.Context, now time.Time) (content, error) {
			return shown(page.Overview(s.Model.Overview(), last, now))
		},
	}
}

func (s *site) nodes(r *http.Request) screen {
	d := page.NodesData{Query: nodeQuery(r), Acts: s.may(r)}
	if d.Query.On != "" {
		// The error is shown beside the field, before nodes are read.
		_, err := targets.Compile(d.Query.On)
		d.Err, _ = errors.AsType[*targets.Error](err)
	}

	return screen{
		Frame: s.frame("Nodes", "Nodes"), live: true, controls: page.NodesControls(d),
		content: func(_ context.Context, now time.Time) (content, error) {
			d := d
			var err error
			d.Page, err = s.Model.Nodes(d.Query)
			invalid, is := errors.AsType[*targets.Error](err)
			switch {
			case is:
				d.Err = invalid
			case err != nil:
				return content{}, err
			}

			return shown(page.Nodes(d, now))
		},
	}
}

func (s *site) node(r *http.Request) screen {
	name, may := r.PathValue("node"), s.may(r)

	return screen{
		Frame: s.frame(name, "Nodes"), live: true, controls: page.Heading(name, true, page.Link{Text: "Nodes", URL: "/nodes"}),
		content: func(_ context.Context, now time.Time) (content, error) {
			d, ok := s.Model.Node(name)
			if !ok {
				return s.unknownNode(name), nil
			}

			return shown(page.Node(d, may, now))
		},
	}
}

func (s *site) unknownNode(name string) content {
	text := "Nodes appear when their agent reports for the first time, and are forgotten some days after the last time."
	if !s.Model.Progress().Nodes {
		text = "The nodes are still being read: it may appear in a moment."
	}

	return absent("node", name, text, page.Link{Text: "Search for it among all nodes", URL: page.NodesURL(view.NodeQuery{Search: name})})
}

func absent(what, name, text string, on page.Link) content {
	return content{Component: page.Missing(what, name, text, on), status: http.StatusNotFound}
}

func (s *site) facts(r *http.Request) screen {
	d := page.FactsData{Node: r.PathValue("node"), Search: r.URL.Query().Get("q")}

	return screen{
		Frame: s.frame("Facts of "+d.Node, "Nodes"), controls: page.FactsControls(d),
		content: func(ctx context.Context, _ time.Time) (content, error) {
			d := d
			var err error
			d.Facts, err = s.Source.Facts(ctx, d.Node)
			switch {
			case errors.Is(err, model.ErrNotFound):
				return absent("facts document of the node", d.Node, "An agent stores its facts when it starts, and when they change.", page.Link{Text: "Search for the node", URL: page.NodesURL(view.NodeQuery{Search: d.Node})}), nil
			case err != nil:
				return content{}, err
			}

			return shown(page.Facts(d))
		},
	}
}

func (s *site) manifests(r *http.Request) screen {
	search, from := searchOf(r), offsetOf(r)

	return screen{
		Frame: s.frame("Manifests", "Manifests"), live: true, controls: page.SearchControls("Manifests", "/manifests", "Part of a name", search, true),
		content: func(_ context.Context, now time.Time) (content, error) {
			return shown(page.Manifests(manifestsOf(s.Model.Manifests(), s.Model.Progress(), search, from), now))
		},
	}
}

// byKey redirects from the key of a manifest, which commands print, to its name.
func (s *site) byKey(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, name, err := fleet.ParseKey(r.PathValue("name"))
		if err == nil {
			if _, assigned := s.Model.Manifest(view.ManifestQuery{Name: name, Limit: 1}); assigned {
				http.Redirect(w, r, string(page.ManifestURL(name, r.URL.Query())), http.StatusFound)
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}

// unassigned returns the page of a name or key without an assignment: the reports if some are known. Events link to such
// manifests.
func (s *site) unassigned(name string, now time.Time) (content, error) {
	p := s.Model.Events(view.EventQuery{Manifest: name, Limit: page.PageSize})
	if len(p.Events) == 0 {
		return unknownManifest(name), nil
	}

	return shown(page.Unassigned(name, p, now))
}

func unknownManifest(name string) content {
	if _, _, err := fleet.ParseKey(name); err == nil {
		return absent("manifest", name, "This key has no assignment: it may have been removed.", page.Link{Text: "Show its history", URL: page.AuditURL(name)})
	}

	return absent("manifest", name, "No manifest of this name is assigned: it may have been removed.", page.Link{Text: "Show all manifests", URL: "/manifests"})
}

func (s *site) manifest(r *http.Request) screen {
	d := page.ManifestData{Query: manifestQuery(r), Tab: page.Tab(r.URL.Query().Get("tab")), Acts: s.may(r)}

	return screen{
		Frame: s.frame(d.Query.Name, "Manifests"), live: true, controls: page.Heading(d.Query.Name, true, page.Link{Text: "Manifests", URL: "/manifests"}),
		content: func(_ context.Context, now time.Time) (content, error) {
			d := d
			var ok bool
			if d.Detail, ok = s.Model.Manifest(d.Query); !ok {
				return s.unassigned(d.Query.Name, now)
			}

			return shown(page.Manifest(d, now))
		},
	}
}

func (s *site) events(r *http.Request) screen {
	d := page.EventsData{Query: eventQuery(r)}

	return screen{
		Frame: s.frame("Events", "Events"), live: d.Query.Before == 0, controls: page.EventsControls(d),
		content: func(_ context.Context, now time.Time) (content, error) {
			d := d
			d.Page = s.Model.Events(d.Query)

			return shown(page.Events(d, now))
		},
	}
}

func (s *site) requests(*http.Request) screen {
	return screen{
		Frame: s.frame("Requests", "Requests"), live: true, controls: page.Heading("Requests", true),
		content: func(_ context.Context, now time.Time) (content, error) {
			return shown(page.Requests(s.Model.Requests(), s.Model.Progress(), now))
		},
	}
}

func (s *site) request(r *http.Request) screen {
	id, run := r.PathValue("id"), r.URL.Query().Get("run") == "true"

	return screen{
		Frame: s.frame("Request", "Requests"), live: true, controls: page.Heading("Request", true, page.Link{Text: "Requests", URL: "/requests"}),
		content: func(ctx context.Context, now time.Time) (content, error) {
			d, ok := s.Model.Request(id, run)
			if !ok {
				return absent("request", id, "It has no stored answer: the server has the newest 1,000 answered requests.", page.Link{Text: "Show all requests", URL: "/requests"}), nil
			}

			answers, err := s.Source.Answers(ctx, d)
			out := page.RequestData{Detail: d, Answers: answers}
			if err != nil {
				out.Err = plain(err)
			}

			return shown(page.Request(out, now))
		},
	}
}

func (s *site) registrations(r *http.Request) screen {
	search := searchOf(r)

	return screen{
		Frame: s.frame("Registrations", "Registrations"), controls: page.SearchControls("Registrations", "/registrations", "Service, cluster, address or node", search, false),
		content: func(ctx context.Context, _ time.Time) (content, error) {
			all, err := s.Source.Registrations(ctx)
			if err != nil {
				return content{}, err
			}

			return shown(page.Registrations(registered(all, search), search))
		},
	}
}

func (s *site) audit(r *http.Request) screen {
	search, from, times := searchOf(r), offsetOf(r), timesOf(r)

	return screen{
		Frame: s.frame("Audit", "Audit"), controls: page.AuditControls("/audit", "Part of a key or a name, or: assigned, removed", search, times),
		content: func(ctx context.Context, now time.Time) (content, error) {
			all, more, err := s.Source.Assigned(reader(ctx, r))
			if err != nil {
				return content{}, err
			}

			d := auditOf(within(all, times), more, search, from)
			d.Times = times
			d.Terms = termsOf(s.Model.Manifests())

			return shown(page.Audit(d, now))
		},
	}
}

func (s *site) history(r *http.Request) screen {
	key, may := r.PathValue("key"), s.may(r)

	return screen{
		Frame: s.frame(key, "Audit"), controls: page.Heading(key, false, page.Link{Text: "Audit", URL: "/audit"}),
		content: func(ctx context.Context, now time.Time) (content, error) {
			all, err := s.Source.History(ctx, key)
			if errors.Is(err, model.ErrNotFound) || errors.Is(err, model.ErrInvalidName) || err == nil && len(all) == 0 {
				return absent("assignment", key, "The bucket has no revision of it.", page.Link{Text: "Show all assignments", URL: "/audit"}), nil
			}
			if err != nil {
				return content{}, err
			}

			return shown(page.History(key, historyOf(all), may, now))
		},
	}
}

func (s *site) missing(r *http.Request) screen {
	return screen{
		Frame: s.frame("Not found", ""), controls: templ.NopComponent,
		content: func(context.Context, time.Time) (content, error) {
			return absent("page", r.URL.Path, "The address may be mistyped, or of another version of muster.", page.Link{Text: "Go to the overview", URL: "/"}), nil
		},
	}
}

// reader returns the context in which a list is read. Reads that all users share do not count against the limit of one
// user; searches do.
func reader(ctx context.Context, r *http.Request) context.Context {
	if r.URL.RawQuery == "" {
		return access.ForAll(ctx)
	}

	return ctx
}

func searchOf(r *http.Request) string { return strings.TrimSpace(r.URL.Query().Get("q")) }

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
				return absent("run", d.ID, "The stream of reports does not have it: reports expire.", page.Link{Text: "Show the events of the node", URL: page.EventsURL(view.EventQuery{Node: d.Node})}), nil
			case err != nil:
				return content{}, err
			}
			d.Detail.Progress = s.Model.Progress()
			d.SourceFile, d.Source = s.manifestOf(ctx, d.Detail)

			// A run with a summary does not change, so the stream of reports is not read again.
			return content{page.Run(d, now), http.StatusOK, d.Detail.Run != nil || d.Detail.Request != ""}, nil
		},
	}
}

// manifestOf returns the lines of the manifest of a run and the file name in its errors, if the errors contain
// positions. It works for plain manifests whose revision is still in the bucket, and returns nothing otherwise.
func (s *site) manifestOf(ctx context.Context, d view.RunDetail) (file string, lines []string) {
	if d.Run == nil || d.Run.OK() || d.Run.Revision == 0 {
		return "", nil
	}
	all, err := s.Source.History(ctx, d.Run.Manifest)
	if err != nil {
		return "", nil // show the page without it
	}
	for _, e := range all {
		text := string(e.Value)
		if e.Revision == d.Run.Revision && e.Key == d.Run.Manifest && assign.Readable(e.Key, e.Value) == text {
			return e.Key, strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		}
	}

	return "", nil
}

// registered returns the registrations that contain a text, sorted.
func registered(all []registration.Registration, search string) []registration.Registration {
	search = strings.ToLower(search)
	out := slices.DeleteFunc(slices.Clone(all), func(r registration.Registration) bool {
		return !strings.Contains(strings.ToLower(strings.Join([]string{r.Service, r.Cluster, r.ProtocolName, r.Address, r.Node, strconv.Itoa(r.Port)}, " ")), search)
	})
	slices.SortFunc(out, func(a, b registration.Registration) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port))
	})

	return out
}

// manifestsOf returns a page of the manifests whose names contain a text.
func manifestsOf(all []view.ManifestRow, p view.Progress, search string, from int) page.ManifestsData {
	matching := slices.DeleteFunc(slices.Clone(all), func(m view.ManifestRow) bool {
		return !strings.Contains(strings.ToLower(m.Name), strings.ToLower(search))
	})

	return page.ManifestsData{Progress: p, Search: search, Offset: from, Rows: matching[min(from, len(matching)):min(from+page.PageSize, len(matching))], Matching: len(matching)}
}

// auditOf returns a page of the revisions that contain a text.
func auditOf(all []model.Entry, more bool, search string, from int) page.AuditData {
	found := view.AssignmentChanges(all, search)
	from = min(from, len(found))

	return page.AuditData{Search: search, Offset: from, Rows: found[from:min(from+page.PageSize, len(found))], Matching: len(found), More: more}
}

func within(all []model.Entry, times page.Times) []model.Entry {
	return slices.DeleteFunc(slices.Clone(all), func(e model.Entry) bool {
		return !times.Since.IsZero() && e.Time.Before(times.Since) || !times.Until.IsZero() && !e.Time.Before(times.Until)
	})
}

func termsOf(all []view.ManifestRow) map[uint64]*model.Terms {
	out := map[uint64]*model.Terms{}
	for _, m := range all {
		for _, k := range m.Keys {
			out[k.Revision] = k.Terms
		}
	}

	return out
}

// maxRevision is the maximum size of a revision for comparison in bytes.
const maxRevision = 256 << 10

// historyOf reverses revisions, so that the newest comes first.
func historyOf(entries []model.Entry) []page.Revision {
	var out []page.Revision
	before := ""
	for i, e := range entries {
		text, long := "", len(e.Value) > maxRevision
		if !e.Deleted && !long {
			text = assign.Readable(e.Key, e.Value)
		}
		r := page.Revision{Entry: e}
		switch {
		case long || i > 0 && len(entries[i-1].Value) > maxRevision:
			r.What = "Too long to be compared here: muster fleet show " + e.Key + " --diff --revision " + strconv.FormatUint(e.Revision, 10)
		case i == 0:
			r.What, r.Lines = "The oldest stored revision", split(text)
		default:
			r.What, r.Lines = "Changes to the revision before", split(udiff.Unified("revision "+page.RevisionText(entries[i-1].Revision), "revision "+page.RevisionText(e.Revision), before, text))
			if len(r.Lines) == 0 {
				r.What = "The same as the revision before"
			}
		}
		before = text
		out = append(out, r)
	}
	slices.Reverse(out)

	return out
}

func split(text string) []string {
	var out []string
	for l := range strings.Lines(text) {
		out = append(out, strings.TrimRight(l, "\r\n"))
	}

	return out
}
