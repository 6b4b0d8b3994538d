package archive

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/web"
	"github.com/musterfleet/muster/resources/resource"
)

// The defaults of HTTPOptions.
const (
	defaultBackoff  = time.Second
	defaultProgress = 10 * time.Second
	// defaultTimeout applies to a resource without timeout.
	defaultTimeout = time.Minute
)

// HTTPOptions configures HTTP. The zero value is ready to use.
type HTTPOptions struct {
	// Client sends the requests; nil means a client of package web.
	Client *http.Client
	// Backoff is the pause before the second try, 1 s when 0. It doubles with each
	// try.
	Backoff time.Duration
	// Progress is the log interval of a download, 10 s when 0.
	Progress time.Duration
}

// HTTP fetches archives over HTTP.
type HTTP struct{ opts HTTPOptions }

// NewHTTP returns the provider.
func NewHTTP(o HTTPOptions) HTTP {
	if o.Client == nil {
		o.Client = web.NewClient(web.Options{})
	}
	o.Backoff, o.Progress = cmp.Or(o.Backoff, defaultBackoff), cmp.Or(o.Progress, defaultProgress)

	return HTTP{opts: o}
}

// Name is http.
func (HTTP) Name() string { return "http" }

// IsManageable requires an http or https URL, and a format or a name without an unsupported
// extension.
func (HTTP) IsManageable(_ model.Facts, spec resource.Spec) (bool, int, error) {
	s, ok := spec.(*Spec)
	if !ok {
		return false, 0, fmt.Errorf("%T is not an archive", spec)
	}
	if u, err := url.Parse(s.URL); err != nil || s.URL != "" && u.Scheme != "http" && u.Scheme != "https" {
		return false, 0, fmt.Errorf("the url must be http or https")
	}
	if _, err := Format(s.Name); err != nil && s.Format == "" {
		return false, 0, err
	}

	return true, 1, nil
}

// Status reads the archive, without following a link, and its creates path.
func (p HTTP) Status(ctx context.Context, env resource.Env, spec *Spec) (*State, error) {
	entry, err := env.Host.Look(spec.Name)
	if err != nil {
		return nil, err
	}
	meta := &Metadata{Name: spec.Name, Provider: p.Name(), ArchiveExists: entry.Kind != files.Absent}
	state := &State{Entry: entry, Metadata: meta}
	state.Ensure = model.EnsureAbsent
	if meta.ArchiveExists {
		state.Ensure = model.EnsurePresent
		meta.Owner, meta.Group = env.Host.UserName(ctx, entry.UID), env.Host.GroupName(ctx, entry.GID)
		meta.Size, meta.MTime = entry.Size, entry.ModTime.UTC()
	}
	// A user who owns the directory can put a file of any size there at no cost. Reading it takes hours.
	if spec.Ensure != model.EnsureAbsent && entry.Kind == files.File && entry.Size <= int64(spec.MaxSize) {
		if meta.Checksum, err = env.Host.Compare(ctx, entry); err != nil {
			return nil, fmt.Errorf("could not read the archive: %w", err)
		}
	}
	if spec.Creates == "" {
		return state, nil
	}
	created, err := env.Host.Follow(spec.Creates)
	meta.CreatesExists = created.Kind != files.Absent

	return state, err
}
