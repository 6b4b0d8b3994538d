package requests

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/resources/host"
)

// maxCancels is how many cancels are remembered whose request did not come yet. They are kept
// apart from the requests: any number of ids may be cancelled, and must not displace what was
// executed and could come again.
const maxCancels = 1000

// earlyCancel is a cancel that came before its request.
type earlyCancel struct {
	// Sum is that of the id of the request.
	Sum string    `json:"sum"`
	Why string    `json:"why"`
	At  time.Time `json:"at"`
}

// earlyCancels are the cancels of requests that did not come yet, on disk.
type earlyCancels struct {
	host *host.Host
	path string

	mu sync.Mutex
	// all are those of the last day, the oldest first.
	all []earlyCancel
}

func openEarlyCancels(h *host.Host, dir string, log *slog.Logger) *earlyCancels {
	c := &earlyCancels{host: h, path: filepath.Join(dir, "cancels")}
	var err error
	if c.all, err = host.ReadRecord[[]earlyCancel](c.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("cancels of requests that did not come yet are not known", "error", err)
	}

	return c
}

// of returns why the request with an id is cancelled, false where it is not.
func (c *earlyCancels) of(id string) (why string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.all, func(e earlyCancel) bool { return e.Sum == fileName(id) })
	if i < 0 {
		return "", false
	}

	return c.all[i].Why, true
}

// refreshAfter is after how long a cancel that comes again is remembered anew: it may come any number
// of times, and each would be written.
const refreshAfter = time.Hour

// add remembers a cancel, and reports whether it is new. With an error it is not remembered.
func (c *earlyCancels) add(ctx context.Context, id, why string) (isNew bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, sum := time.Now().UTC(), fileName(id)
	if slices.ContainsFunc(c.all, func(e earlyCancel) bool { return e.Sum == sum && now.Sub(e.At).Abs() < refreshAfter }) {
		return false, nil
	}
	all := slices.DeleteFunc(slices.Clone(c.all), func(e earlyCancel) bool {
		isNew = isNew || e.Sum == sum
		return e.Sum == sum || now.Sub(e.At) > keepFor
	})
	isNew = !isNew
	all = append(all, earlyCancel{sum, why, now})
	all = all[max(len(all)-maxCancels, 0):]
	if err := c.host.WriteRecord(ctx, c.path, all); err != nil {
		return false, err
	}
	c.all = all

	return isNew, nil
}
