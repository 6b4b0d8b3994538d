package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/musterfleet/muster/fleet/actions"
	"github.com/musterfleet/muster/fleet/target"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/fleet/web/page"
	"github.com/musterfleet/muster/fleet/web/page/texts"
)

const (
	// maxForm is how many bytes the form of an action may have.
	maxForm = 64 << 10
	// briefly is how long the answer to a form waits for the end of the action, so that most pages
	// need no update.
	briefly = 2 * time.Second
)

// addActions adds the pages of actions.
func (s *site) addActions(mux *http.ServeMux) {
	if s.Actions == nil {
		mux.HandleFunc("POST /actions/", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, actions.ErrOff.Error(), http.StatusForbidden)
		})
		return
	}
	for _, k := range []actions.Kind{actions.Pause, actions.Resume, actions.Run} {
		mux.Handle("GET /actions/"+string(k), compressed(s.operators(func(w http.ResponseWriter, r *http.Request) { s.confirm(w, r, k, http.StatusOK, "") })))
		mux.Handle("POST /actions/"+string(k), s.operators(func(w http.ResponseWriter, r *http.Request) { s.begin(w, r, k) }))
	}
	mux.Handle("GET /actions/preview", compressed(s.operators(s.previews)))
	mux.Handle("POST /actions/preview", s.operators(s.preview))
	mux.Handle("GET /actions", s.serve(s.actions))
	mux.Handle("GET /actions/{id}", s.serve(s.action))
}

// may returns what whoever makes a request may do.
func (s *site) may(r *http.Request) page.Acts {
	if s.Actions == nil || access.UserOf(r.Context()).Role < access.Operate {
		return page.Acts{}
	}
	out := page.Acts{May: true}
	if err := s.Actions.CanAsk(); err != nil {
		out.CannotAsk = err.Error()
	}

	return out
}

// operators lets those pass who may act.
func (s *site) operators(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.may(r).May {
			next(w, r)
			return
		}
		s.write(w, r, http.StatusForbidden, s.frame("Not permitted", "Actions"), page.Forbidden(whyNot(access.UserOf(r.Context()))))
	})
}

// whyNot says why somebody may not act, and what to do about it.
func whyNot(u access.User) string {
	if u.Name == "" {
		return "Nobody signed in, so this only reads: sign in with a token of the role operate."
	}

	return u.Name + " may only read: that needs the role operate."
}

// write answers with a page that is drawn for this request alone.
func (s *site) write(w http.ResponseWriter, r *http.Request, status int, f page.Frame, c templ.Component) {
	f = s.framed(r, f)
	f.Now = s.Now()
	var out bytes.Buffer
	if err := page.Layout(f, c, "").Render(r.Context(), &out); err != nil {
		s.Log.Error("cannot draw a page", "path", r.URL.Path, "error", err)
		http.Error(w, "the page cannot be drawn", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// The error is that of a browser that went away.
	_, _ = io.WriteString(w, texts.Visible(out.String()))
}

// framed adds to a frame who looks at it.
func (s *site) framed(r *http.Request, f page.Frame) page.Frame {
	f.User, f.Acts, f.Operates = access.UserOf(r.Context()).Name, s.Actions != nil, s.may(r).May

	return f
}

// targetOf returns the target of a request.
func targetOf(r *http.Request) actions.Target {
	return actions.Target{Nodes: r.Form["node"], Group: r.Form.Get("group"), On: strings.TrimSpace(r.Form.Get("on"))}
}

// confirm shows whom an action would be for, and asks; problem is why the form did nothing.
func (s *site) confirm(w http.ResponseWriter, r *http.Request, k actions.Kind, status int, problem string) {
	if err := r.ParseForm(); err != nil || len(r.URL.RawQuery) > maxURL {
		http.Error(w, "the form cannot be read", http.StatusBadRequest)
		return
	}
	f := page.ActionForm{
		Acts: s.may(r), Kind: k, Target: targetOf(r), Problem: problem,
		Until: r.Form.Get("until"), Reason: r.Form.Get("reason"), Manifests: r.Form.Get("manifests"), Within: r.Form.Get("within"), Noop: r.Form.Get("noop") == "yes",
	}
	if f.Within == "" {
		f.Within = "2m"
	}
	var err error
	if f.Match, err = s.Actions.Match(f.Target); err != nil {
		status = max(status, statusOf(err))
		if problem == "" {
			f.Problem = err.Error()
		}
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	s.write(w, r, status, s.frame("Confirm", "Nodes"), page.ActionConfirm(f))
}

// statusOf returns the status of HTTP for an order that is not carried out.
func statusOf(err error) int {
	var wrong *target.Error
	var refused *actions.Refusal
	switch {
	case errors.As(err, &refused), errors.As(err, &wrong):
		return http.StatusUnprocessableEntity
	case errors.Is(err, actions.ErrNobody):
		return http.StatusNotFound
	case errors.Is(err, actions.ErrAll), errors.Is(err, actions.ErrOthers):
		return http.StatusConflict
	default:
		return http.StatusServiceUnavailable
	}
}

// begin does what a form says, and leads to what came of it.
func (s *site) begin(w http.ResponseWriter, r *http.Request, k actions.Kind) {
	if !s.readForm(w, r, maxForm) {
		return
	}
	o, err := orderOf(r, k, s.Now())
	var a actions.Action
	if err == nil {
		a, err = s.Actions.Begin(o)
	}
	if err != nil {
		s.confirm(w, r, k, statusOf(err), err.Error())
		return
	}
	s.lead(w, r, a)
}

// lead leads to the page of an action, once it has ended or soon after.
func (s *site) lead(w http.ResponseWriter, r *http.Request, a actions.Action) {
	ctx, cancel := context.WithTimeout(r.Context(), briefly)
	defer cancel()
	s.Actions.Wait(ctx, a.ID)
	http.Redirect(w, r, string(page.ActionURL(a.ID)), http.StatusSeeOther)
}

// readForm reads a form of so many bytes at most, and reports whether it could.
func (s *site) readForm(w http.ResponseWriter, r *http.Request, most int64) bool {
	r.Body = http.MaxBytesReader(w, r.Body, most)
	if err := r.ParseForm(); err != nil {
		status := http.StatusBadRequest
		if tooLong := new(http.MaxBytesError); errors.As(err, &tooLong) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "the form cannot be read: "+err.Error(), status)
		return false
	}
	// What a link says does not act: it only counts where it is confirmed.
	r.Form = r.PostForm

	return true
}

// orderOf returns the order of a form.
func orderOf(r *http.Request, k actions.Kind, now time.Time) (actions.Order, error) {
	o := actions.Order{
		Kind: k, Target: targetOf(r), By: access.UserOf(r.Context()).Name, Reason: strings.TrimSpace(r.Form.Get("reason")),
		Manifests: strings.Fields(strings.ReplaceAll(r.Form.Get("manifests"), ",", " ")), Noop: r.Form.Get("noop") == "yes", All: r.Form.Get("all") == "yes",
	}
	// Without the number of nodes that were shown nothing was confirmed.
	o.Expect, _ = strconv.Atoi(r.Form.Get("nodes"))
	o.Expect = max(o.Expect, 0)
	var err error
	if o.Until, err = actions.ParseUntil(r.Form.Get("until"), now); err != nil {
		return o, err
	}
	if within := r.Form.Get("within"); within != "" {
		if o.Within, err = time.ParseDuration(within); err != nil {
			return o, &actions.Refusal{Why: "how long nodes may take must be a duration such as 2m"}
		}
	}

	return o, nil
}

// actions is the page of the last actions.
func (s *site) actions(r *http.Request) screen {
	may := s.may(r)

	return screen{
		Frame: s.frame("Actions", "Actions"), live: true, controls: page.Heading("Actions", true), changes: s.Actions.Changes,
		content: func(_ context.Context, now time.Time) (content, error) {
			return shown(page.Actions(s.Actions.Actions(), may, now))
		},
	}
}

// action is the page of an action.
func (s *site) action(r *http.Request) screen {
	id, title, live := r.PathValue("id"), "Action", false
	if a, ok := s.Actions.Action(id); ok {
		title, live = page.ActionTitle(a), a.Ended.IsZero()
	}

	return screen{
		Frame: s.frame(title, "Actions"), live: true, controls: page.Heading(title, live, page.Link{Text: "Actions", URL: "/actions"}), changes: s.Actions.Changes,
		content: func(_ context.Context, now time.Time) (content, error) {
			a, ok := s.Actions.Action(id)
			if !ok {
				return absent("action", id, "This server does not know it: it was started since, or another server did it. Audit and requests have what came of it.", page.Link{Text: "Show the actions", URL: "/actions"}), nil
			}

			return content{page.Action(a, now), http.StatusOK, !a.Ended.IsZero()}, nil
		},
	}
}
