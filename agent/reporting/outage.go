package reporting

import "log/slog"

// outage is that the disk fails at something, logged when it begins and when it is over.
type outage struct {
	log *slog.Logger
	// failing is that the last try failed, logged that the log says so.
	failing, logged bool
	// missing is how many bytes are still to be written before it counts as over: a try
	// that had nothing to write, or less than what failed, succeeds on a full disk too.
	missing int64
}

// failed notes that so many bytes could not be written.
func (o *outage) failed(size int64) { o.missing = max(o.missing, size) }

// wrote notes that so many bytes were written.
func (o *outage) wrote(size int64) { o.missing = max(0, o.missing-size) }

// note notes the error of the disk, nil for none; event says what it means.
func (o *outage) note(err error, event string) {
	switch o.failing = err != nil; {
	case o.failing && !o.logged:
		o.logged = true
		o.log.Error(event, "error", err)
	case !o.failing && o.logged && o.missing == 0:
		o.logged = false
		o.log.Info("outbox writable again")
	}
}
