package reporting

import "log/slog"

// outage tracks disk errors; it logs the first error and the recovery.
type outage struct {
	log *slog.Logger
	// failing reports whether the last write failed; logged whether the log contains the failure.
	failing, logged bool
	// missing is the number of bytes to write before the outage is over: an empty or smaller write
	// succeeds on a full disk also.
	missing int64
}

// failed records a failed write of size bytes.
func (o *outage) failed(size int64) { o.missing = max(o.missing, size) }

// wrote records a successful write of size bytes.
func (o *outage) wrote(size int64) { o.missing = max(0, o.missing-size) }

// note records the result of a disk operation, nil for success; event is the log message for an error.
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
