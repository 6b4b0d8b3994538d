// Package http fetches archives over HTTP.
package http

import (
	"cmp"
	"context"
	"fmt"
	nethttp "net/http"
	"net/url"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/archive"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/web"
	"github.com/musterfleet/muster/resources/resource"
)

const (
	name = "http"
	// priority is the best one: this is the default provider.
	priority = 1
)

// The defaults of Options.
const (
	defaultBackoff  = time.Second
	defaultProgress = 10 * time.Second
	// defaultTimeout applies to a resource without timeout.
	defaultTimeout = time.Minute
)

// Options configure a Provider. The zero value is ready to use.
type Options struct {
	// Client fetches; nil is a client of package web.
	Client *nethttp.Client
	// Backoff is the pause before the second try, 1 s when 0. It doubles with each
	// try.
	Backoff time.Duration
	// Progress is the log interval of a download, 10 s when 0.
	Progress time.Duration
}

// Provider fetches archives over HTTP.
type Provider struct{ opts Options }

// New returns the provider.
func New(o Options) Provider {
	if o.Client == nil {
		o.Client = web.NewClient(web.Options{})
	}
	o.Backoff, o.Progress = cmp.Or(o.Backoff, defaultBackoff), cmp.Or(o.Progress, defaultProgress)

	return Provider{opts: o}
}

// Name is http.
func (Provider) Name() string { return name }

// IsManageable requires an http or https URL, and a format or a name without an unsupported
// extension.
func (Provider) IsManageable(_ model.Facts, spec resource.Spec) (bool, int, error) {
	s, ok := spec.(*archive.Spec)
	if !ok {
		return false, 0, fmt.Errorf("%T is not an archive", spec)
	}
	if u, err := url.Parse(s.URL); err != nil || s.URL != "" && u.Scheme != "http" && u.Scheme != "https" {
		return false, 0, fmt.Errorf("the url must be http or https")
	}
	if _, err := archive.Format(s.Name); err != nil && s.Format == "" {
		return false, 0, err
	}

	return true, priority, nil
}

// Status reads the archive, without following a link, and its creates path.
func (Provider) Status(ctx context.Context, env resource.Env, spec *archive.Spec) (*archive.State, error) {
	entry, err := env.Host.Look(spec.Name)
	if err != nil {
		return nil, err
	}
	meta := &archive.Metadata{Name: spec.Name, Provider: name, ArchiveExists: entry.Kind != files.Absent}
	state := &archive.State{Entry: entry, Metadata: meta}
	state.Ensure = model.EnsureAbsent
	if meta.ArchiveExists {
		state.Ensure = model.EnsurePresent
		meta.Owner, meta.Group = env.Host.UserName(ctx, entry.UID), env.Host.GroupName(ctx, entry.GID)
		meta.Size, meta.MTime = entry.Size, entry.ModTime.UTC()
	}
	// Whoever owns its directory makes a larger one at no cost, and it takes hours to read.
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
