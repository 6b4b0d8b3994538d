package reporting

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/model"
)

// ErrFormat reports an outbox that another version of muster wrote.
var ErrFormat = errors.New("unknown format of the outbox")

type store struct {
	dir  string
	lock *os.File
	// cursor is the file of the acknowledged seq, a record without a report. It is
	// overwritten in place, which works on a full disk too, and not synced: after a
	// power failure some reports are published again.
	cursor *os.File
	// segments are ordered by their first report. tails holds the open segment of each class, nil if a
	// new one is needed.
	segments []*segment
	tails    [classes]*segment
}

// openStore locks the directory and opens its segments, which it does not load.
// It returns ErrInUse or ErrFormat, with the segments untouched.
func openStore(dir string) (*store, error) {
	s := &store{dir: dir}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		s.lock, err = lockDir(dir)
	}
	if err == nil {
		err = s.list()
	}
	if err == nil {
		s.cursor, err = os.OpenFile(filepath.Join(dir, "cursor"), os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}

	return s, nil
}

func (s *store) list() error {
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		c, first, is, err := s.segmentOf(f.Name())
		if err != nil {
			return err
		}
		if !is {
			continue
		}
		seg, err := openSegment(s.dir, c, first)
		if err != nil {
			return err
		}
		s.segments, s.tails[c] = append(s.segments, seg), seg
	}

	return nil
}

// segmentOf parses a segment file name into class and first seq; is reports whether it is a segment.
// It returns ErrFormat for a segment of another version of muster.
func (s *store) segmentOf(name string) (c class, first uint64, is bool, err error) {
	found := regexp.MustCompile(`^([0-9]{20})(\..*)$`).FindStringSubmatch(name)
	if found == nil {
		return 0, 0, false, nil
	}
	first, err = strconv.ParseUint(found[1], 10, 64)
	known := slices.Index([]string{stable.suffix(), other.suffix()}, found[2])
	if known < 0 || err != nil || first == 0 || first > maxSeq {
		return 0, 0, true, fmt.Errorf("%w: %s is not of this version; let the muster that wrote it publish its reports, then move %s away",
			ErrFormat, filepath.Join(s.dir, name), s.dir)
	}

	return class(known), first, true, nil
}

func (s *store) acknowledge(seq uint64) error {
	_, err := s.cursor.WriteAt(record{seq: seq}.line(), 0)

	return err
}

// acknowledged returns how far reports are published, errDamaged when that is not
// known: then those that are there are published again.
func (s *store) acknowledged() (uint64, error) {
	b := make([]byte, record{}.size())
	if _, err := s.cursor.ReadAt(b, 0); err != nil {
		return 0, fmt.Errorf("%w: %w", errDamaged, err)
	}
	r, err := parseLine(b)

	return r.seq, err
}

// append writes a report to the segment of its class, or to a new one where that
// has most bytes.
func (s *store) append(c class, r record, most int64) (*segment, int64, error) {
	tail := s.tails[c]
	if tail == nil || tail.size >= most {
		if tail != nil {
			if err := tail.sync(); err != nil {
				return nil, 0, err
			}
		}
		created, err := openSegment(s.dir, c, r.seq)
		if err != nil {
			return nil, 0, err
		}
		if err := syncDir(s.dir); err != nil {
			return nil, 0, errors.Join(err, created.file.Close())
		}
		tail = created
		s.segments, s.tails[c] = append(s.segments, tail), tail
	}
	offset, err := tail.append(r)

	return tail, offset, err
}

func (s *store) bytes() (sum int64) {
	for _, seg := range s.segments {
		sum += seg.size
	}

	return sum
}

func (s *store) last() (seq uint64) {
	for _, seg := range s.segments {
		seq = max(seq, seg.last)
	}

	return seq
}

// shrink marks segments as dropped until at most most bytes remain: stable summaries first, oldest
// first, never the segment of the newest report. It closes marked segments for writing.
func (s *store) shrink(most int64) {
	left, newest := s.bytes(), s.last()
	for c := range classes {
		for _, seg := range s.segments {
			if left > most && seg.class == c && seg.last != newest {
				seg.dropped = true
				left -= seg.size
				if s.tails[c] == seg {
					s.tails[c] = nil
				}
			}
		}
	}
}

// removeFinished removes segments without waiting reports, except open ones and the one with the last
// seq. A dropped segment is removed only if noticed is true.
func (s *store) removeFinished(noticed bool) (err error) {
	count, removed := s.last(), false
	s.segments = slices.DeleteFunc(s.segments, func(seg *segment) bool {
		if err != nil || seg.waiting > 0 || seg.last == count || seg == s.tails[seg.class] || seg.dropped && !noticed {
			return false
		}
		if !removed {
			err = s.cursor.Sync() // otherwise removed reports look lost after a power failure
		}
		if err == nil {
			err, removed = seg.remove(), true
		}

		return err == nil
	})
	if removed {
		err = errors.Join(err, syncDir(s.dir))
	}

	return err
}

func (s *store) close() (err error) {
	if s.lock != nil {
		err = unlockDir(s.lock)
	}
	files := []*os.File{s.cursor, s.lock}
	for _, seg := range s.segments {
		files = append(files, seg.file)
	}
	for _, f := range files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}

	return err
}

// class groups reports by the order in which they are dropped.
type class uint8

const (
	// stable are the summaries of stable runs.
	stable class = iota
	other
	classes
)

// suffix ends the names of a class' segments. Another format gets others.
func (c class) suffix() string { return [classes]string{".stable.log", ".log"}[c] }

func classOf(r *model.Report) class {
	if r.Kind == model.KindRun && r.Outcome == model.OutcomeStable {
		return stable
	}

	return other
}

// segment is one file of records. Its name is the seq before which it has no
// report, so that an empty one keeps the count.
type segment struct {
	file  *os.File
	class class
	size  int64
	// last is the seq of the last report in the segment, durable the seq of the last synced report.
	last, durable uint64
	// waiting counts its reports that are neither acknowledged nor dropped.
	waiting int
	// dropped: remove the file once the notice is durable. damaged: rename the file instead of
	// removing it.
	dropped, damaged bool
}

func openSegment(dir string, c class, first uint64) (*segment, error) {
	f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("%020d%s", first, c.suffix())), os.O_RDWR|os.O_CREATE, 0o600)

	return &segment{file: f, class: c, last: first - 1}, err
}

// load yields the records, and truncates a record that a kill left incomplete.
func (s *segment) load(yield func(r record, offset int64)) error {
	data, err := os.ReadFile(s.file.Name())
	if err != nil {
		return err
	}
	s.size, s.damaged = parse(data, func(r record, offset int64) {
		s.last = max(s.last, r.seq)
		yield(r, offset)
	})
	s.durable = s.last

	return s.file.Truncate(s.size)
}

func (s *segment) append(r record) (offset int64, err error) {
	if _, err := s.file.WriteAt(r.line(), s.size); err != nil {
		return 0, errors.Join(err, s.file.Truncate(s.size))
	}
	offset, s.size, s.last = s.size, s.size+r.size(), r.seq

	return offset, nil
}

func (s *segment) sync() error {
	if s.last == s.durable {
		return nil
	}
	err := s.file.Sync()
	if err == nil {
		s.durable = s.last
	}

	return err
}

// remove removes the file, or keeps the last damaged one aside.
func (s *segment) remove() error {
	name := s.file.Name()
	var err error
	if s.damaged {
		err = os.Rename(name, filepath.Join(filepath.Dir(name), "damaged"))
	} else {
		err = os.Remove(name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = s.file.Close() // nothing of it is needed

	return nil
}

// replaceFile writes a file durably, except for its directory entry. It does not use Host.Write, which
// records temporary files: on a full disk that record would fail and keep the outbox from freeing
// space.
func replaceFile(path string, content []byte) error {
	temp := path + ".tmp"
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}

	return nil
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}

	return errors.Join(f.Sync(), f.Close())
}

// lockDir locks a directory for this process until unlockDir or its end. It
// returns ErrInUse when another process has it.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
	case nil:
		return f, nil
	case unix.EWOULDBLOCK:
		return nil, errors.Join(ErrInUse, f.Close())
	default:
		return nil, errors.Join(err, f.Close())
	}
}

// unlockDir unlocks a directory also where a process that is just being started has a copy
// of the descriptor.
func unlockDir(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }

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

func (r record) line() []byte {
	b := fmt.Appendf(make([]byte, 0, r.size()), "%8s %020d %s\n", "", r.seq, r.payload)
	copy(b, checksum(b))

	return b
}

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

func (r record) report() (model.Report, error) {
	var out model.Report
	if err := json.Unmarshal(r.payload, &out); err != nil {
		return out, fmt.Errorf("%w: %w", errDamaged, err)
	}
	out.Seq = r.seq

	return out, nil
}

// Check reads an outbox without its lock and changes nothing: another process may have
// it open. It returns why Open would not open it, and the files with reports that it
// would report as dropped. A directory that does not exist has no problems.
func Check(dir string) []error {
	s := &store{dir: dir}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	problems := []error{err}
	for _, f := range entries {
		_, _, is, err := s.segmentOf(f.Name())
		if is && err == nil {
			err = checkSegment(filepath.Join(dir, f.Name()))
		}
		problems = append(problems, err)
	}
	if _, err := s.parseNotice(); err != nil {
		problems = append(problems, &fs.PathError{Op: "read", Path: s.noticePath(), Err: err})
	}

	return problems
}

// checkSegment reads a segment; a line that is not complete yet is none of it.
func checkSegment(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the agent published its reports and removed it
	}
	if err != nil {
		return err
	}
	unreadable := 0
	_, damaged := parse(data, func(r record, _ int64) {
		if _, err := r.report(); err != nil {
			unreadable++
		}
	})
	switch {
	case damaged:
		return &fs.PathError{Op: "read", Path: path, Err: errDamaged}
	case unreadable > 0:
		return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%d reports are not of this version", unreadable)}
	default:
		return nil
	}
}
