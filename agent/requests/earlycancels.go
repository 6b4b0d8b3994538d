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

// maxCancels limits the remembered cancels of unknown requests. They are stored apart from the
// requests: a flood of cancels must not displace executed requests, which could be delivered again.
const maxCancels = 1000

// earlyCancel is a cancel that arrived before its request.
type earlyCancel struct {
	// Sum is the checksum of the request id.
	Sum string    `json:"sum"`
	Why string    `json:"why"`
	At  time.Time `json:"at"`
}

// earlyCancels stores the cancels that arrived before their requests.
type earlyCancels struct {
	host *host.Host
	path string

	mu sync.Mutex
	// all holds the cancels of the last day, oldest first.
	all []earlyCancel
}

func openEarlyCancels(h *host.Host, dir string, log *slog.Logger) *earlyCancels {
	c := &earlyCancels{host: h, path: filepath.Join(dir, "cancels")}
	var err error
	if c.all, err = host.ReadRecord[[]earlyCancel](c.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("cannot read cancels of requests that have not arrived", "error", err)
	}

	return c
}

// of returns why the request with this id was cancelled, and whether it was.
func (c *earlyCancels) of(id string) (why string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.all, func(e earlyCancel) bool { return e.Sum == fileName(id) })
	if i < 0 {
		return "", false
	}

	return c.all[i].Why, true
}

// refreshAfter is the age at which a repeated cancel is stored again. Repeats before that are not
// written: a sender may repeat a cancel any number of times.
const refreshAfter = time.Hour

// add stores a cancel and reports whether it is new. With an error, the cancel is not remembered.
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
