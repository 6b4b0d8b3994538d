package reporting

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// ErrFormat reports an outbox that another version of muster wrote.
var ErrFormat = errors.New("unknown format of the outbox")

// store is the directory of segments.
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

// list opens the segments in the order of their names.
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

// acknowledge writes how far reports are published.
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

// bytes returns the size of all segments.
func (s *store) bytes() (sum int64) {
	for _, seg := range s.segments {
		sum += seg.size
	}

	return sum
}

// last returns the seq of the last report on disk.
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

// close unlocks the directory and closes the files.
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
