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

// ErrChecksum is content that does not have the checksum asked for.
var ErrChecksum = errors.New("the checksum does not match")

// Download fetches in constant memory. A transfer that breaks is gone on with
// where it broke, where the server allows that and still has the same content;
// else it begins anew. Its errors hold no credentials.
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
	// What is wrong from the beginning is found out before anything is written.
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

// request makes the first request, and gives all that is secret in it.
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
