package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/web/page"
	"github.com/musterfleet/muster/model"
)

// maxPreviewForm is the maximum size of the form of a preview in bytes; the manifest in it is escaped.
const maxPreviewForm = 3*ask.MaxPreviewed + maxForm

// previews shows the manifests for a preview, and asks for the nodes.
func (p *actionPages) previews(w http.ResponseWriter, r *http.Request) {
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
func (p *actionPages) previewForm(w http.ResponseWriter, r *http.Request, problem error) {
	f := page.PreviewForm{
		Acts: p.site.may(r), Key: r.Form.Get("key"), Revision: r.Form.Get("revision"), Name: r.Form.Get("name"), Manifest: r.Form.Get("manifest"),
		On: strings.TrimSpace(r.Form.Get("on")), Within: r.Form.Get("within"), Progress: p.site.Model.Progress(),
	}
	if f.Within == "" {
		f.Within = "2m"
	}
	for _, m := range p.site.Model.Manifests() {
		for _, k := range m.Keys {
			f.Keys = append(f.Keys, k.Key)
		}
	}
	slices.Sort(f.Keys)
	if problem != nil {
		f.Problem, f.Busy = problem.Error(), errors.Is(problem, ask.ErrBusy)
	}
	p.asked(w, r, statusOf(problem), p.site.frame("Preview", "Previews"), page.Preview(f))
}

// preview starts a preview, and redirects to its page.
func (p *actionPages) preview(w http.ResponseWriter, r *http.Request) {
	if !readForm(w, r, maxPreviewForm) {
		return
	}
	o, err := specOf(r, ask.Preview, p.site.Now())
	if err == nil {
		o.Expect = ask.Expect{} // it changes nothing, so it needs no confirmation
		o.Previewed, err = p.previewed(r.Context(), r)
	}
	var a ask.Action
	if err == nil {
		a, err = p.executor.Start(o)
	}
	if err != nil {
		p.previewForm(w, r, err)
		return
	}
	p.lead(w, r, a)
}

// previewed returns the manifest of a form: its text, or a revision of an assignment.
func (p *actionPages) previewed(ctx context.Context, r *http.Request) (*ask.Previewed, error) {
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
	all, err := p.site.Source.History(ctx, key)
	if err != nil && !errors.Is(err, model.ErrNotFound) {
		return nil, err
	}

	return ask.RevisionOf(key, all, revision)
}
