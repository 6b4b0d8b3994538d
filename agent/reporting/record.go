package reporting

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"

	"github.com/musterfleet/muster/model"
)

const (
	// headLen is checksum, seq and the spaces behind them.
	headLen = 8 + 1 + 20 + 1
	// maxRecord is more than any server takes as one message.
	maxRecord = 16 << 20
	// maxSeq is more than any node counts to; beyond it the counter could overflow.
	maxSeq = 1 << 62
)

var errDamaged = errors.New("damaged record")

// record is a seq with a report in JSON. It is stored as a line: the CRC-32C of
// the rest in hex, the seq in 20 digits, the JSON.
type record struct {
	seq     uint64
	payload []byte
}

func (r record) size() int64 { return headLen + int64(len(r.payload)) + 1 }

// line returns the stored form.
func (r record) line() []byte {
	b := fmt.Appendf(make([]byte, 0, r.size()), "%8s %020d %s\n", "", r.seq, r.payload)
	copy(b, checksum(b))

	return b
}

// checksum returns the CRC-32C of a line, in hex.
func checksum(line []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(line[8:], crc32.MakeTable(crc32.Castagnoli)))
}

// parseLine reads a stored record; its payload aliases line. It returns errDamaged if the checksum or
// the seq is invalid.
func parseLine(line []byte) (record, error) {
	if len(line) <= headLen || string(line[:8]) != checksum(line) {
		return record{}, errDamaged
	}
	seq, err := strconv.ParseUint(string(line[9:headLen-1]), 10, 64)
	if err != nil || seq > maxSeq {
		return record{}, errDamaged
	}

	return record{seq: seq, payload: line[headLen : len(line)-1]}, nil
}

// parse passes on the records of a file with their offsets, and returns how many
// of its bytes are whole lines, and whether some of them are damaged.
func parse(data []byte, yield func(r record, offset int64)) (whole int64, damaged bool) {
	for line := range bytes.Lines(data) {
		if line[len(line)-1] != '\n' {
			break // a kill cut it off
		}
		if r, err := parseLine(line); err == nil {
			yield(r, whole)
		} else {
			damaged = true
		}
		whole += int64(len(line))
	}

	return whole, damaged
}

// encode returns the record of a report.
func encode(r *model.Report) (record, error) {
	payload, err := json.Marshal(r)
	if err != nil {
		return record{}, fmt.Errorf("encode report: %w", err)
	}
	if len(payload) > maxRecord {
		return record{}, fmt.Errorf("report has %d bytes, more than the limit of %d", len(payload), maxRecord)
	}

	return record{seq: r.Seq, payload: payload}, nil
}

// report decodes a record.
func (r record) report() (model.Report, error) {
	var out model.Report
	if err := json.Unmarshal(r.payload, &out); err != nil {
		return out, fmt.Errorf("%w: %w", errDamaged, err)
	}
	out.Seq = r.seq

	return out, nil
}
