package reporting

import (
	"time"

	"github.com/musterfleet/muster/model"
)

const (
	// batchSpan is how much time the reports of a batch span: it delays them by as much.
	batchSpan = time.Second
	// maxEnvelope is what a report in a batch has beside its document, its node and its
	// manifest.
	maxEnvelope = 1 << 10
)

// first returns how many of the waiting reports are published first, and whether
// these are a batch. It depends on the reports alone, from the first one on, so that
// after a kill the same reports make the same batch, which the server knows. open
// reports that the batch may become longer: nothing waits behind it yet.
func first(reports []model.Report, most int) (n int, batch, open bool) {
	if len(reports) == 0 || !reports[0].Batch {
		for n < len(reports) && !reports[n].Batch {
			n++
		}
		return n, false, false
	}
	for size := 0; n < len(reports); n++ {
		r := &reports[n]
		size += len(r.Data) + len(r.Node) + len(r.Manifest) + maxEnvelope
		if joins := r.Batch && r.RunID == reports[0].RunID && r.Time.Sub(reports[0].Time) <= batchSpan; n > 0 && (!joins || size > most) {
			break
		}
	}

	return n, n > 1, n == len(reports) && n < maxReports
}
