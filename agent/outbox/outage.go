package outbox

import "log/slog"

// outage is that the disk fails at something, logged when it begins and when it is over.
type outage struct {
	log   *slog.Logger
	began bool
}

// note notes the error of the disk, nil for none; event says what it means.
func (o *outage) note(err error, event string) {
	if o.began == (err != nil) {
		return
	}
	if o.began = err != nil; o.began {
		o.log.Error(event, "error", err)
	} else {
		o.log.Info("outbox writable again")
	}
}
