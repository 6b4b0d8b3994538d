package archive_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	hostarchive "github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/typetest"
	"github.com/musterfleet/muster/testing/webtest"
)

// TestWhatIsNoArchiveIsFetchedAgain has a server that first sends a page instead of the archive. The
// manifest has no checksum.
func TestWhatIsNoArchiveIsFetchedAgain(t *testing.T) {
	const page = "<!DOCTYPE html><title>Sign in</title>"
	for name, more := range map[string]typetest.Properties{
		"without creates": {"extract_parent": "DIR/opt"},
		"with creates":    {"extract_parent": "DIR/opt", "creates": markerOfApp},
		"with cleanup":    {"extract_parent": "DIR/opt", "creates": markerOfApp, "cleanup": true},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := newStand(t), t.TempDir()
			s.server.Put("/a.tar.gz", webtest.Text(page))
			o := newOne(t, s.of(t, more)(dir))
			for range 2 {
				_, plan := o.due()
				if !plan.Has("download") || !plan.Has("extract") {
					t.Fatalf("noop says %q", plan.Message())
				}
				if _, err := o.apply(plan); !errors.Is(err, hostarchive.ErrNotArchive) || !strings.Contains(err.Error(), "the next run fetches it again") {
					t.Fatalf("the error is %v", err)
				}
				holds("a.tar.gz", page)(t, dir)
			}
			s.server.Put("/a.tar.gz", webtest.Text(s.new))
			_, plan := o.due()
			_, err := o.apply(plan)
			check(t, err)
			holds("opt/app/bin/tool", "2\n")(t, dir)
			if _, plan := o.due(); !plan.Empty() {
				t.Errorf("still due: %s", plan.Message())
			}
			if n := len(s.server.Requests()); n != 3 {
				t.Errorf("it was fetched %d times", n)
			}
		})
	}
}

// TestWhatIsRefusedSaysTheWayOut has an archive that unpacks to too much, and without its
// checksum nothing that would tell of a better one.
func TestWhatIsRefusedSaysTheWayOut(t *testing.T) {
	for _, checksum := range []bool{false, true} {
		s, dir := newStand(t), t.TempDir()
		s.new = pack(t, "big", strings.Repeat("x", 1<<20))
		s.server.Put("/a.tar.gz", webtest.Text(s.new))
		more := typetest.Properties{"extract_parent": "DIR/opt", "max_size": "100kB"}
		if checksum {
			more["checksum"] = sum(s.new)
		}
		o := newOne(t, s.of(t, more)(dir))
		way := "; the archive stays and is not fetched again: remove " + dir + "/a.tar.gz to fetch it again, or set checksum"
		for range 2 {
			_, plan := o.due()
			if _, err := o.apply(plan); !errors.Is(err, files.ErrTooLarge) || strings.HasSuffix(err.Error(), way) == checksum {
				t.Errorf("the error is %v", err)
			}
		}
	}
}

// TestWhatIsNoArchiveStays covers invalid archives that a new download would not repair: the content has the
// wanted checksum, or another user has replaced it.
func TestWhatIsNoArchiveStays(t *testing.T) {
	const page = "<!DOCTYPE html><title>Sign in</title>"
	s, dir := newStand(t), t.TempDir()
	s.server.Put("/a.tar.gz", webtest.Text(page))
	o := newOne(t, s.of(t, typetest.Properties{"extract_parent": "DIR/opt", "checksum": sum(page)})(dir))
	for _, want := range []string{downloaded + ". " + extracted, extracted} {
		_, plan := o.due()
		if plan.Message() != want {
			t.Fatalf("with its checksum noop says %q", plan.Message())
		}
		if _, err := o.apply(plan); !errors.Is(err, hostarchive.ErrNotArchive) || strings.Contains(err.Error(), "again") {
			t.Fatalf("the error is %v", err)
		}
	}
	dir = t.TempDir()
	o = newOne(t, s.of(t, typetest.Properties{"extract_parent": "DIR/opt"})(dir))
	_, plan := o.due()
	if _, err := o.apply(plan); !errors.Is(err, hostarchive.ErrNotArchive) {
		t.Fatal(err)
	}
	withFile("a.tar.gz", s.old)(t, dir)
	if _, plan = o.due(); plan.Message() != extracted {
		t.Errorf("of what was replaced noop says %q", plan.Message())
	}
	_, err := o.apply(plan)
	check(t, err)
	holds("opt/app/bin/tool", "1\n")(t, dir)
}

// TestCleanupKeepsTheArchiveUntilCreatesIsThere has a creates that nothing makes.
func TestCleanupKeepsTheArchiveUntilCreatesIsThere(t *testing.T) {
	s, dir := newStand(t), t.TempDir()
	o := newOne(t, s.of(t, typetest.Properties{"extract_parent": "DIR/opt", "creates": "DIR/opt/app/bin/other", "cleanup": true})(dir))
	for _, want := range []string{downloaded + ". " + extracted + ". " + cleanedUp, extracted + ". " + cleanedUp} {
		_, plan := o.due()
		if plan.Message() != want {
			t.Fatalf("noop says %q, not %q", plan.Message(), want)
		}
		outcome, err := o.apply(plan)
		check(t, err)
		holds("a.tar.gz", s.new)(t, dir)
		holds("opt/app/bin/tool", "2\n")(t, dir)
		state, _ := o.due()
		err = o.typ.Verify(o.spec, outcome, state)
		if want := dir + "/a.tar.gz was unpacked into " + dir + "/opt, but " + dir + "/opt/app/bin/other is missing: `creates` must name a path in the archive; the archive stays until it does"; err == nil || err.Error() != want {
			t.Errorf("the error is %v, not %s", err, want)
		}
	}
	if n := len(s.server.Requests()); n != 1 {
		t.Errorf("it was fetched %d times", n)
	}
	// Once the name is put right the archive goes.
	o = newOne(t, s.of(t, typetest.Properties{"extract_parent": "DIR/opt", "creates": markerOfApp, "cleanup": true})(dir))
	_, plan := o.due()
	if plan.Message() != cleanedUp {
		t.Fatalf("noop says %q", plan.Message())
	}
	_, err := o.apply(plan)
	check(t, err)
	if _, err := os.Lstat(filepath.Join(dir, "a.tar.gz")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the archive is left: %v", err)
	}
}

// TestLargeFileInPlaceOfAnArchive has the owner of its directory make a file of 8 TiB there,
// which takes no space and hours to read: it is fetched again unread.
func TestLargeFileInPlaceOfAnArchive(t *testing.T) {
	t.Parallel()
	s, dir := newStand(t), t.TempDir()
	path := filepath.Join(dir, "a.tar.gz")
	check(t, errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, 8<<40)))
	o := newOne(t, s.of(t, typetest.Properties{"checksum": sum(s.new)})(dir))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, plan := o.due()
		_, err := o.apply(plan)
		check(t, err)
	}()
	select {
	case <-ended:
		holds("a.tar.gz", s.new)(t, dir)
	case <-time.After(time.Minute):
		t.Fatal("it is still read")
	}
}
