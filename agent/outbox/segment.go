package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	segmentSuffix = ".seg"
	tempSuffix    = ".tmp"
)

// segment is one file of records. Its name is the number before which no record
// of it is, so that an empty one keeps the count.
type segment struct {
	path  string
	first uint64
	// last is the number of its last record, first-1 when it has none.
	last uint64
	size int64
	// records and stable are how many there are, and how many of those may be
	// dropped first.
	records, stable int
}

func segmentPath(dir string, first uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%020d%s", first, segmentSuffix))
}

// add counts a record that was written.
func (s *segment) add(r record) {
	s.last = r.seq
	s.size += r.size()
	s.records++
	if r.flags&flagStable != 0 {
		s.stable++
	}
}

// createSegment makes an empty one, durably.
func createSegment(dir string, first uint64) (*segment, *os.File, error) {
	s := &segment{path: segmentPath(dir, first), first: first, last: first - 1, size: int64(len(magic))}
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, nil, err
	}
	_, err = f.WriteAt([]byte(magic), 0)
	if err == nil {
		err = errors.Join(f.Sync(), syncDir(dir))
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close(), os.Remove(s.path))
	}

	return s, f, nil
}

// listSegments gives those of a directory in their order, and removes what a
// killed rewrite left.
func listSegments(dir string) ([]*segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []*segment
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), tempSuffix) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return nil, err
			}
			continue
		}
		digits, ok := strings.CutSuffix(e.Name(), segmentSuffix)
		first, err := strconv.ParseUint(digits, 10, 64)
		if !ok || err != nil || first == 0 || first > maxSeq {
			continue
		}
		out = append(out, &segment{path: filepath.Join(dir, e.Name()), first: first, last: first - 1})
	}
	slices.SortFunc(out, func(a, b *segment) int { return cmp.Compare(a.first, b.first) })

	return out, nil
}

// load reads a segment as far as it is good, cuts off the rest, and says
// whether there was one.
func (s *segment) load() (damaged bool, err error) {
	data, err := os.ReadFile(s.path)
	if err != nil {
		return false, err
	}
	s.last, s.size, s.records, s.stable = s.first-1, int64(len(magic)), 0, 0
	if !strings.HasPrefix(string(data), magic) {
		return true, os.WriteFile(s.path, []byte(magic), 0o600)
	}
	records, good, bad := parseRecords(data[len(magic):], s.first-1)
	for _, r := range records {
		s.add(r)
	}
	if bad == nil {
		return false, nil
	}

	return true, os.Truncate(s.path, int64(len(magic))+good)
}

// chunk is how much of a segment is read at a time.
const chunk = 256 << 10

// read gives records from an offset on: at least one, and about a chunk of
// them. io.EOF means that there are no more.
func (s *segment) read(offset int64) ([]record, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for want := int64(chunk); ; want *= 4 {
		b := make([]byte, min(want, s.size-offset))
		if len(b) == 0 {
			return nil, io.EOF
		}
		if _, err := f.ReadAt(b, offset); err != nil {
			return nil, fmt.Errorf("%w: %w", errDamaged, err)
		}
		records, _, err := parseRecords(b, 0)
		switch {
		case len(records) > 0:
			return records, nil
		case errors.Is(err, errShort) && int64(len(b)) < s.size-offset:
		case errors.Is(err, errShort):
			return nil, errDamaged
		default:
			return nil, err
		}
	}
}

// rewrite replaces a segment by one of only these records, or removes it when
// there are none.
func (s *segment) rewrite(records []record) error {
	if len(records) == 0 {
		return s.remove()
	}
	content := []byte(magic)
	for _, r := range records {
		content = r.appendTo(content)
	}
	if err := replaceFile(s.path, content); err != nil {
		return err
	}
	s.last, s.size, s.records, s.stable = s.first-1, int64(len(magic)), 0, 0
	for _, r := range records {
		s.add(r)
	}

	return syncDir(filepath.Dir(s.path))
}

func (s *segment) remove() error {
	return errors.Join(removeIfThere(s.path), syncDir(filepath.Dir(s.path)))
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	return nil
}

// replaceFile is not Host.Write: on a full disk its record of litter would keep
// the outbox from making room, and the caller must know whether path is the old
// one. The directory is the caller's to sync.
func replaceFile(path string, content []byte) error {
	temp := path + tempSuffix
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
		return errors.Join(err, removeIfThere(temp))
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

// lockDir makes a directory one process's own until the file is closed.
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
