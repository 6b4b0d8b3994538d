package outbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/musterfleet/muster/model"
)

// magic begins every segment; its last digit is the version of the format.
const magic = "muster1\n"

// What a record says of its report.
const (
	// flagStable is the summary of a run with nothing to tell, the first to be dropped.
	flagStable uint8 = 1 << iota
)

const (
	// recordHeader is length, checksum, seq and flags.
	recordHeader = 4 + 4 + 8 + 1
	// maxRecord is more than any server takes as one message.
	maxRecord = 16 << 20
	// maxSeq is more than any node counts to; beyond it the counter could overflow.
	maxSeq = 1 << 62
)

// errShort is a record of which not all is there, errDamaged one that is not
// what was written.
var (
	errShort   = errors.New("record is cut short")
	errDamaged = errors.New("record is damaged")
)

// record is one report as it is stored.
type record struct {
	seq     uint64
	flags   uint8
	payload []byte
}

func (r record) size() int64 { return recordHeader + int64(len(r.payload)) }

// appendTo adds the stored form to b.
func (r record) appendTo(b []byte) []byte {
	start := len(b)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.payload)))
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint64(b, r.seq)
	b = append(b, r.flags)
	b = append(b, r.payload...)
	binary.BigEndian.PutUint32(b[start+4:], checksum(b[start:]))

	return b
}

// checksum is that of a stored record: of its length, and all behind the sum.
func checksum(b []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)

	return crc32.Update(crc32.Checksum(b[:4], table), table, b[8:])
}

// parseRecord reads the first record of b. The payload is part of b. The error
// is errShort when b ends before the record does, and errDamaged otherwise.
func parseRecord(b []byte) (record, error) {
	if len(b) < recordHeader {
		return record{}, errShort
	}
	length := int64(binary.BigEndian.Uint32(b))
	switch {
	case length > maxRecord:
		return record{}, errDamaged
	case int64(len(b)) < recordHeader+length:
		return record{}, errShort
	}
	b = b[:recordHeader+length]
	if binary.BigEndian.Uint32(b[4:]) != checksum(b) {
		return record{}, errDamaged
	}

	return record{seq: binary.BigEndian.Uint64(b[8:]), flags: b[16], payload: b[recordHeader:]}, nil
}

// parseRecords gives the records that b begins with, and how many bytes they
// are. Their numbers must rise from after.
func parseRecords(b []byte, after uint64) (records []record, good int64, err error) {
	for int64(len(b)) > good {
		r, err := parseRecord(b[good:])
		if err == nil && (r.seq <= after || r.seq > maxSeq) {
			err = errDamaged
		}
		if err != nil {
			return records, good, err
		}
		after = r.seq
		records = append(records, r)
		good += r.size()
	}

	return records, good, nil
}

func encode(r *model.Report) (record, error) {
	payload, err := json.Marshal(r)
	if err != nil {
		return record{}, fmt.Errorf("encode report: %w", err)
	}
	if len(payload) > maxRecord {
		return record{}, fmt.Errorf("report of %d bytes, at most %d are kept", len(payload), maxRecord)
	}

	return record{seq: r.Seq, flags: flagsOf(r), payload: payload}, nil
}

func (r record) report() (model.Report, error) {
	var out model.Report
	if err := json.Unmarshal(r.payload, &out); err != nil {
		return out, fmt.Errorf("%w: %w", errDamaged, err)
	}
	out.Seq = r.seq

	return out, nil
}

// flagsOf gives what the record says of a report, so that it need not be decoded
// to decide what is dropped first.
func flagsOf(r *model.Report) uint8 {
	if r.Kind == model.KindRun && r.Outcome == model.OutcomeStable {
		return flagStable
	}

	return 0
}
