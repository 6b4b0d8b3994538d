package watch

import "time"

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
