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

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/fleet/web/api"
	"github.com/musterfleet/muster/fleet/web/page"
	"github.com/musterfleet/muster/model"
)

const (
	// maxForm is the maximum size of the form of an action in bytes.
	maxForm = 64 << 10
	// briefly is how long the answer to a form waits for the end of the action, so that most pages need no update.
	briefly = 2 * time.Second
)

// actionPages are the pages of actions.
type actionPages struct{ *site }

func (p actionPages) add(mux *http.ServeMux) {
	if p.Actions == nil {
		mux.HandleFunc("POST /actions/", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, ask.ErrOff.Error(), http.StatusForbidden)
		})
		return
	}
	for _, k := range []ask.Kind{ask.Pause, ask.Resume, ask.Run} {
		mux.Handle("GET /actions/"+string(k), compressed(p.operators(func(w http.ResponseWriter, r *http.Request) { p.confirm(w, r, k, nil) })))
		mux.Handle("POST /actions/"+string(k), p.operators(func(w http.ResponseWriter, r *http.Request) { p.begin(w, r, k) }))
	}
	mux.Handle("GET /actions/preview", compressed(p.operators(p.previews)))
	mux.Handle("POST /actions/preview", p.operators(p.preview))
	mux.Handle("POST /actions/{id}/cancel", p.operators(p.cancel))
	mux.Handle("GET /actions", p.serve(p.actions))
	mux.Handle("GET /actions/{id}", p.serve(p.action))
}

// may returns the permissions of the user.
func (s *site) may(r *http.Request) page.Acts {
	if s.Actions == nil || access.UserOf(r.Context()).Role < access.Operate {
		return page.Acts{}
	}
	why := func(k ask.Kind) string {
		if err := s.Actions.CheckRequests(k); err != nil {
			return err.Error()
		}
		return ""
	}

	return page.Acts{May: true, CannotRun: why(ask.Run), CannotPreview: why(ask.Preview)}
}

// operators rejects requests of other users.
func (p actionPages) operators(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.may(r).May {
			next(w, r)
			return
		}
		p.answer(w, r, http.StatusForbidden, "Not permitted", "Actions", page.Forbidden(whyNot(access.UserOf(r.Context()))))
	})
}

func whyNot(u access.User) string {
	if u.Name == "" {
		return "The dashboard is read-only until you sign in: use a token of the role operate."
	}

	return u.Name + " may only read: that needs the role operate."
}

// answer answers with a page that is drawn for this request alone.
func (p actionPages) answer(w http.ResponseWriter, r *http.Request, status int, title, section string, c templ.Component) {
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	f := p.frame(title, section)
	f.Now = p.Now()
	p.write(w, r, status, f, c, "")
}

func targetOf(r *http.Request) ask.Target {
	return ask.Target{Nodes: r.Form["node"], Group: r.Form.Get("group"), On: strings.TrimSpace(r.Form.Get("on"))}
}

// confirm shows the nodes of an action and asks for confirmation; problem is the reason why the form was rejected, nil
// for a new form.
func (p actionPages) confirm(w http.ResponseWriter, r *http.Request, k ask.Kind, problem error) {
	if err := r.ParseForm(); err != nil || len(r.URL.RawQuery) > maxURL {
		http.Error(w, "the form cannot be read", http.StatusBadRequest)
		return
	}
	f := page.ActionForm{
		Acts: p.may(r), Kind: k, Target: targetOf(r), Progress: p.Model.Progress(),
		Until: r.Form.Get("until"), Reason: r.Form.Get("reason"), Manifests: r.Form.Get("manifests"), Within: r.Form.Get("within"), Noop: r.Form.Get("noop") == "yes",
	}
	if f.Within == "" {
		f.Within = "2m"
	}
	var err error
	f.Match, err = p.Actions.Match(f.Target)
	status := max(api.StatusOf(problem), api.StatusOf(err))
	if problem = cmp.Or(problem, err); problem != nil {
		f.Problem, f.Busy = problem.Error(), errors.Is(problem, ask.ErrBusy)
	}
	p.answer(w, r, status, "Confirm", "Nodes", page.ActionConfirm(f))
}

func (p actionPages) begin(w http.ResponseWriter, r *http.Request, k ask.Kind) {
	if !readForm(w, r, maxForm) {
		return
	}
	o, err := specOf(r, k, p.Now())
	var a ask.Action
	if err == nil {
		a, err = p.Actions.Start(o)
	}
	if err != nil {
		p.confirm(w, r, k, err)
		return
	}
	p.lead(w, r, a)
}

func (p actionPages) cancel(w http.ResponseWriter, r *http.Request) {
	a, err := p.Actions.Cancel(r.PathValue("id"), access.UserOf(r.Context()).Name)
	if err != nil {
		p.answer(w, r, http.StatusNotFound, "Not found", "Actions", page.Missing("action", r.PathValue("id"), err.Error(), page.Link{Text: "Show the actions", URL: "/actions"}))
		return
	}
	p.lead(w, r, a)
}

// lead redirects to the page of an action when it has ended or soon after.
func (p actionPages) lead(w http.ResponseWriter, r *http.Request, a ask.Action) {
	ctx, cancel := context.WithTimeout(r.Context(), briefly)
	defer cancel()
	p.Actions.Wait(ctx, a.ID)
	p.fragments.forget(string(page.ActionURL(a.ID)))
	http.Redirect(w, r, string(page.ActionURL(a.ID)), http.StatusSeeOther)
}

// readForm reads a form up to a size, and reports whether it succeeded.
func readForm(w http.ResponseWriter, r *http.Request, most int64) bool {
	r.Body = http.MaxBytesReader(w, r.Body, most)
	if err := r.ParseForm(); err != nil {
		status := http.StatusBadRequest
		if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "the form cannot be read: "+err.Error(), status)
		return false
	}
	// A link alone does not act; its parameters only count after a confirmation.
	r.Form = r.PostForm

	return true
}

func specOf(r *http.Request, k ask.Kind, now time.Time) (ask.Spec, error) {
	user := access.UserOf(r.Context())
	o := ask.Spec{
		Kind: k, Target: targetOf(r), By: user.Name, Share: user.Share(), Reason: strings.TrimSpace(r.Form.Get("reason")),
		Manifests: strings.Fields(strings.ReplaceAll(r.Form.Get("manifests"), ",", " ")), Noop: r.Form.Get("noop") == "yes", All: r.Form.Get("all") == "yes",
	}
	// Without the list of shown nodes nothing was confirmed.
	o.Expect.Nodes, _ = strconv.Atoi(r.Form.Get("nodes"))
	o.Expect.Digest = cmp.Or(r.Form.Get("digest"), "none")
	var err error
	if o.Until, err = ask.ParseUntil(r.Form.Get("until"), now); err != nil {
		return o, err
	}
	if within := r.Form.Get("within"); within != "" {
		if o.Within, err = time.ParseDuration(within); err != nil {
			return o, &ask.Refusal{Why: "how long nodes may take must be a duration such as 2m"}
		}
	}

	return o, nil
}

func (p actionPages) actions(r *http.Request) screen {
	may := p.may(r)

	return screen{
		Frame: p.frame("Actions", "Actions"), live: true, controls: page.Heading("Actions", true), changes: p.Actions.Changes,
		content: func(_ context.Context, now time.Time) (content, error) {
			all := p.Actions.Actions()
			for i := range all {
				all[i] = all[i].VisibleTo(may.May)
			}

			return shown(page.Actions(all, may, now))
		},
	}
}

func (p actionPages) action(r *http.Request) screen {
	id, title, live, may := r.PathValue("id"), "Action", false, p.may(r)
	if a, ok := p.Actions.Action(id); ok {
		title, live = page.ActionTitle(a), a.Ended.IsZero()
	}

	return screen{
		Frame: p.frame(title, "Actions"), live: true, controls: page.Heading(title, live, page.Link{Text: "Actions", URL: "/actions"}), changes: p.Actions.Changes,
		content: func(_ context.Context, now time.Time) (content, error) {
			a, ok := p.Actions.Action(id)
			if !ok {
				return absent("action", id, "It is unknown: this server restarted, or another server ran it. Audit and requests show the results.", page.Link{Text: "Show the actions", URL: "/actions"}), nil
			}

			return content{page.Action(a.VisibleTo(may.May), may, now), http.StatusOK, !a.Ended.IsZero()}, nil
		},
	}
}

// maxPreviewForm is the maximum size of the form of a preview in bytes; the manifest in it is escaped.
const maxPreviewForm = 3*ask.MaxPreviewed + maxForm

// previews shows the manifests for a preview, and asks for the nodes.
func (p actionPages) previews(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil || len(r.URL.RawQuery) > maxURL {
		http.Error(w, "the form cannot be read", http.StatusBadRequest)
		return
	}
	// A link must not fill in a manifest, because its guards would run after one click.
	r.Form.Del("name")
	r.Form.Del("manifest")
	p.previewForm(w, r, nil)
}

// previewForm answers with the form; problem is the reason why it was rejected, nil for a new form.
func (p actionPages) previewForm(w http.ResponseWriter, r *http.Request, problem error) {
	f := page.PreviewForm{
		Acts: p.may(r), Key: r.Form.Get("key"), Revision: r.Form.Get("revision"), Name: r.Form.Get("name"), Manifest: r.Form.Get("manifest"),
		On: strings.TrimSpace(r.Form.Get("on")), Within: r.Form.Get("within"), Progress: p.Model.Progress(),
	}
	if f.Within == "" {
		f.Within = "2m"
	}
	for _, m := range p.Model.Manifests() {
		for _, k := range m.Keys {
			f.Keys = append(f.Keys, k.Key)
		}
	}
	slices.Sort(f.Keys)
	if problem != nil {
		f.Problem, f.Busy = problem.Error(), errors.Is(problem, ask.ErrBusy)
	}
	p.answer(w, r, api.StatusOf(problem), "Preview", "Previews", page.Preview(f))
}

func (p actionPages) preview(w http.ResponseWriter, r *http.Request) {
	if !readForm(w, r, maxPreviewForm) {
		return
	}
	o, err := specOf(r, ask.Preview, p.Now())
	if err == nil {
		o.Expect = ask.Expect{} // it changes nothing, so it needs no confirmation
		o.Previewed, err = p.previewed(r.Context(), r)
	}
	var a ask.Action
	if err == nil {
		a, err = p.Actions.Start(o)
	}
	if err != nil {
		p.previewForm(w, r, err)
		return
	}
	p.lead(w, r, a)
}

// previewed returns the manifest of a form: its text, or a revision of an assignment.
func (p actionPages) previewed(ctx context.Context, r *http.Request) (*ask.Previewed, error) {
	if text := r.Form.Get("manifest"); strings.TrimSpace(text) != "" {
		return &ask.Previewed{Name: strings.TrimSpace(r.Form.Get("name")), Value: strings.ReplaceAll(text, "\r\n", "\n")}, nil
	}
	revision := uint64(0)
	if text := strings.TrimSpace(r.Form.Get("revision")); text != "" {
		var err error
		if revision, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, &ask.Refusal{Why: "the revision must be a number"}
		}
	}
	key := r.Form.Get("key")
	if key == "" {
		return nil, &ask.Refusal{Why: "there is nothing to preview: choose an assignment, or write a manifest"}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	all, err := p.Source.History(ctx, key)
	if err != nil && !errors.Is(err, model.ErrNotFound) {
		return nil, err
	}

	return ask.RevisionOf(key, all, revision)
}
