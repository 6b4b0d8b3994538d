package archive_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/archive"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/typetest"
)

// extraction is a plan that only extracts.
var extraction = resource.Plan{Changes: []model.Change{{Action: "extract"}}}

// TestWhatIsUnpackedIsVerified has the archive replaced after its state was read.
func TestWhatIsUnpackedIsVerified(t *testing.T) {
	s := newStand(t)
	for right, want := range map[bool]string{true: strings.ToUpper(sum(s.new)), false: sum(s.old)} {
		dir := t.TempDir()
		withFile("a.tar.gz", s.new)(t, dir)
		o := newOne(t, s.of(t, typetest.Properties{"extract_parent": "DIR/opt", "checksum": want})(dir))
		_, err := o.apply(extraction)
		if _, missing := os.Lstat(filepath.Join(dir, "opt")); (err == nil) != right || (missing == nil) != right {
			t.Errorf("the right checksum %t: %v, %v", right, err, missing)
		}
		if !right && (!errors.Is(err, archive.ErrChecksum) || !strings.Contains(err.Error(), "expected "+want+", got "+sum(s.new))) {
			t.Errorf("the error is %v", err)
		}
	}
}

// TestWhatOthersMayWriteIsCopied has an archive that its group may change while
// it is unpacked.
func TestWhatOthersMayWriteIsCopied(t *testing.T) {
	s, dir := newStand(t), t.TempDir()
	withFile("a.tar.gz", s.new)(t, dir)
	check(t, os.Chmod(filepath.Join(dir, "a.tar.gz"), 0o660))
	o := newOne(t, s.of(t, typetest.Properties{"extract_parent": "DIR/opt", "checksum": sum(s.new)})(dir))
	_, err := o.apply(extraction)
	check(t, err)
	holds("opt/app/bin/tool", "2\n")(t, dir)
	if left, _ := filepath.Glob(filepath.Join(o.env.Host.StateDir(), "tmp", "*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
