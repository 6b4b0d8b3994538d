package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/web"
	"github.com/musterfleet/muster/resources/resource"
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
