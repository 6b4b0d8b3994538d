package http

import (
	"context"
	"errors"
	"fmt"
	nethttp "net/http"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/archive"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/web"
	"github.com/musterfleet/muster/resources/resource"
)

// ErrChecksum is content with another checksum than the wanted one.
var ErrChecksum = errors.New("the checksum does not match")

// Download fetches with constant memory. A broken transfer continues where it
// broke if the server supports that and the content is the same, else it
// restarts. Errors hold no credentials.
func (p Provider) Download(ctx context.Context, env resource.Env, spec *archive.Spec, a files.Attrs, complete func(string) error) error {
	req, secrets, err := request(ctx, spec)
	if err != nil {
		return err
	}
	t := &transfer{
		opts: p.opts, log: env.Log, request: req, secrets: secrets, timeout: timeout(spec), began: time.Now(),
		finish: func(checksum string) error {
			if want := spec.WantedChecksum(); want != "" && checksum != want {
				return fmt.Errorf("%w: expected %s, got %s", ErrChecksum, want, checksum)
			}
			return complete(checksum)
		},
	}
	defer t.close()
	env.Log.InfoContext(ctx, "downloading", "url", web.Name(req.URL))
	// Early errors are found before anything is written.
	err = t.start(ctx)
	for err == nil {
		err = env.Host.Write(ctx, spec.Name, t.reader(ctx), a)
		if !errors.Is(err, errRestart) {
			break
		}
		err = t.start(ctx)
	}
	var broken transferError
	switch {
	case errors.As(err, &broken):
		return fmt.Errorf("%s: %w", web.Name(req.URL), web.WithoutCredentials(broken.error, secrets...))
	case err != nil:
		return err
	}
	env.Log.InfoContext(ctx, "downloaded", "url", web.Name(req.URL), "bytes", t.at, "took", time.Since(t.began).Round(time.Millisecond).String())

	return nil
}

// request returns the first request and its secrets.
func request(ctx context.Context, spec *archive.Spec) (*nethttp.Request, []model.Secret, error) {
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
