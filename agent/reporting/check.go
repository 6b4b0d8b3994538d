package reporting

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

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
