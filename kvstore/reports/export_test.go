package reports

import (
	"iter"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// EncodeReport returns a report as it is in the stream.
func EncodeReport(r model.Report) ([]byte, error) { return Event(r) }

// DecodeReport is the inverse of EncodeReport.
func DecodeReport(n kvstore.Names, subject string, data []byte) (model.Report, error) {
	envelope, err := parseSubject(n, subject)
	if err != nil {
		return model.Report{}, err
	}

	return decodeEvent(envelope, subject, data)
}

// FloodingOf names the nodes that flood, of counts by subject.
func FloodingOf(n kvstore.Names, counts map[string]int64, most int64) map[string]string {
	return flooding(n, counts, most)
}

// Decode yields the reports of a message.
func Decode(n kvstore.Names, m kvstore.Message) iter.Seq2[model.Report, error] { return decode(n, m) }
