package kvstore

import (
	"github.com/musterfleet/muster/model"
)

// DecodeRegistration decodes a registration from a subject, for tests.
func DecodeRegistration(n Names, subject string, data []byte) (Registered, error) {
	return decodeRegistration(n, Message{Subject: subject, Data: data})
}

// EncodeReport returns a report as it is in the stream.
func EncodeReport(r model.Report) ([]byte, error) { return Reports{}.Event(r) }

// DecodeReport is the inverse of EncodeReport.
func DecodeReport(n Names, subject string, data []byte) (model.Report, error) {
	envelope, err := parseReportSubject(n, subject)
	if err != nil {
		return model.Report{}, err
	}

	return decodeEvent(envelope, subject, data)
}

// FloodingOf names the nodes that flood, of counts by subject.
func FloodingOf(n Names, counts map[string]int64, most int64) map[string]string {
	return floodingNodes(n, counts, most)
}

// Decode returns the reports of a message.
func Decode(n Names, m Message) ([]model.Report, error) { return decodeReports(n, m) }

// The scans of a stream, for tests.
var (
	ScanDirect = scanDirect
	ScanStream = scanStream
)
