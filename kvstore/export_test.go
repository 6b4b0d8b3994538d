package kvstore

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// Conn gives a test the connection.
func (s *Store) Conn() *nats.Conn { return s.nc }

// IndexOf gives a test what the index of a family lists.
func IndexOf(ctx context.Context, s *Store, family string) (map[string]model.IndexEntry, error) {
	ix, err := s.readIndex(ctx, family)

	return ix.names, err
}

// DecodeRegistration gives a test what is made of a registration on a subject.
func DecodeRegistration(n Names, subject string, data []byte) (Registered, error) {
	return n.decodeRegistration(message{subject: subject, data: data})
}

// EncodeReport gives a test what stands for a report in the stream.
func EncodeReport(r model.Report) ([]byte, error) { return encodeReport(r) }

// DecodeReport is the inverse of EncodeReport.
func DecodeReport(n Names, subject string, data []byte) (model.Report, error) {
	return n.decodeReport(subject, data)
}
