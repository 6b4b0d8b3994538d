package reporting

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/musterfleet/muster/model"
)

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

// openSegment opens the segment of a class with a first seq, or creates it.
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

// append writes a record, and returns its offset.
func (s *segment) append(r record) (offset int64, err error) {
	if _, err := s.file.WriteAt(r.line(), s.size); err != nil {
		return 0, errors.Join(err, s.file.Truncate(s.size))
	}
	offset, s.size, s.last = s.size, s.size+r.size(), r.seq

	return offset, nil
}

// sync makes its reports durable.
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
