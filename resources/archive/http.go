package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/musterfleet/muster/model"
	hostarchive "github.com/musterfleet/muster/resources/host/archive"
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
		if meta.Checksum, _, err = env.Host.Compare(ctx, entry); err != nil {
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

var (
	// ErrUnsupported is an unknown archive extension.
	ErrUnsupported = errors.New("archive type not supported")
	// ErrChecksum means that the content does not have the wanted checksum.
	ErrChecksum = errors.New("the checksum does not match")
)

// Download fetches with constant memory, and at most max_size bytes. A broken transfer continues at the same
// position if the server supports that and the content is the same; otherwise it restarts. Errors
// contain no credentials.
func (p HTTP) Download(ctx context.Context, env resource.Env, spec *Spec, a files.Attrs, complete func(string) error) error {
	req, secrets, err := request(ctx, spec)
	if err != nil {
		return err
	}
	t := &transfer{
		client: p.opts.Client, request: req, max: spec.MaxSize, backoff: p.opts.Backoff,
		log:  log{Logger: env.Log, url: web.Name(req.URL), secrets: secrets, every: p.opts.Progress, began: time.Now()},
		pace: pace{timeout: cmp.Or(spec.Timeout.Std(), defaultTimeout)},
	}
	defer t.close()
	env.Log.InfoContext(ctx, "downloading", "url", web.Name(req.URL))
	// Early errors occur before anything is written.
	err = t.start(ctx)
	for err == nil {
		err = env.Host.Write(ctx, spec.Name, t.reader(ctx, complete), a)
		if !errors.Is(err, errRestart) {
			break
		}
		err = t.start(ctx)
	}
	var broken transferError
	switch {
	case errors.As(err, &broken):
		err = web.Failed(req.URL, broken.error, secrets...)
		if do := remedy(broken.error); do != "" {
			err = fmt.Errorf("%w (%s)", err, do)
		}
		return err
	case err != nil:
		return err
	}
	env.Log.InfoContext(ctx, "downloaded", "url", web.Name(req.URL), "bytes", t.at, "took", time.Since(t.log.began).Round(time.Millisecond).String())

	return nil
}

// remedy returns the remedy for a response without content, or an empty string.
func remedy(err error) string {
	var status statusError
	switch {
	case !errors.As(err, &status):
		return ""
	case status.code == http.StatusUnauthorized, status.code == http.StatusForbidden:
		return "check `username`, `password` and `headers`"
	case status.code == http.StatusNotFound, status.code == http.StatusGone:
		return "check `url`"
	case status.code >= 500:
		return "the server fails; the next run tries again"
	}

	return ""
}

// request returns the first request and its secrets.
func request(ctx context.Context, spec *Spec) (*http.Request, []model.Secret, error) {
	req, secrets, err := web.NewRequest(ctx, spec.URL)
	if err != nil {
		return nil, nil, err
	}
	for key, value := range spec.Headers {
		req.Header.Set(key, value)
	}
	if spec.Username != "" {
		req.SetBasicAuth(spec.Username, spec.Password)
	}

	return req, append(secrets, spec.Secrets()...), nil
}

// maxEntries limits the entries of an archive.
const maxEntries = 1_000_000

// Extract checks the whole archive, and unpacks it if it is safe.
func (HTTP) Extract(ctx context.Context, env resource.Env, spec *Spec, content *hostarchive.Archive) error {
	index, err := content.Extract(ctx, env.Host.Disk, spec.ExtractParent, hostarchive.Limits{Bytes: int64(spec.MaxSize), Entries: maxEntries, LinksOut: spec.Links == LinksKeep}, hostarchive.Options{
		Preserve: spec.Preserve, ResolveOwner: func(o hostarchive.Owner) (uid, gid int) { return resolveOwner(ctx, env, o) },
	})
	if err != nil {
		return err
	}
	env.Log.InfoContext(ctx, "extracted", "archive", spec.Name, "into", spec.ExtractParent, "entries", index.Entries, "bytes", index.Bytes)

	return nil
}

// resolveOwner returns the accounts for the names in an archive, as tar does, or else its numbers.
func resolveOwner(ctx context.Context, env resource.Env, o hostarchive.Owner) (uid, gid int) {
	uid, gid = o.UID, o.GID
	if id, err := env.Host.UID(ctx, o.User); o.User != "" && err == nil {
		uid = int(id)
	}
	if id, err := env.Host.GID(ctx, o.Group); o.Group != "" && err == nil {
		gid = int(id)
	}

	return uid, gid
}
