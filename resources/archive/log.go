package archive

import (
	"context"
	"log/slog"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/web"
)

// log writes the events of a download, without credentials.
type log struct {
	*slog.Logger
	url     string
	secrets []model.Secret
	// every is the interval of progress messages.
	every         time.Duration
	began, logged time.Time
}

// progress logs the progress at intervals.
func (l *log) progress(ctx context.Context, at, total int64) {
	if l.logged.IsZero() {
		l.logged = l.began
	}
	if time.Since(l.logged) < l.every {
		return
	}
	l.logged = time.Now()
	args := []any{"url", l.url, "bytes", at}
	if total > 0 {
		args = append(args, "of", total, "percent", 100*at/total)
	}
	l.InfoContext(ctx, "downloading", args...)
}

// retry logs a failed try. The client's error may hold secrets.
func (l *log) retry(ctx context.Context, at int64, err error, pause time.Duration) {
	l.InfoContext(ctx, "download interrupted, retrying", "url", l.url, "bytes", at, "error", web.WithoutCredentials(err, l.secrets...).Error(), "pause", pause.String())
}
