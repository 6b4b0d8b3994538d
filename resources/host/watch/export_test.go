package watch

import (
	"log/slog"
	"time"
)

// NewAt returns a watcher that looks for the socket of systemd below another root.
func NewAt(root string) *Watcher {
	w := New(nil)
	w.units = newUnits(slog.New(slog.DiscardHandler), root)

	return w
}

// Unsettled reports whether a tree has yet to be gone through.
func Unsettled(w *Watcher) bool {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()

	return len(w.files.trees) > 0
}

// RetryNow has the next event try again what failed.
func RetryNow(w *Watcher) {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	w.files.retry = time.Time{}
}

// Hold keeps events from being read, but for those of one reading, until it is called.
func Hold(w *Watcher) (release func()) {
	w.files.mu.Lock()

	return w.files.mu.Unlock
}
