//go:build system

package scaffold_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/testing/hosttest"
)

// TestSystemAttributesInNoop names the files that keep or lose extended attributes.
func TestSystemAttributesInNoop(t *testing.T) {
	hosttest.NeedRoot(t)
	bind := binary.LittleEndian.AppendUint32(nil, 0x02000001)
	bind = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(bind, 1<<10), 0)
	for name, c := range map[string]struct{ mine, theirs, same int }{
		"one that keeps": {mine: 1}, "several that keep": {mine: 5}, "one that loses": {theirs: 1}, "both, and files without": {mine: 1, theirs: 2, same: 1}, "none": {same: 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSubject(t, put("src/x", "new", "out/x", "new"))
			mine, theirs := "", ""
			file := func(kind string, i int, setup func(path string)) string {
				path := fmt.Sprintf("%s/out/%s%d", s.dir, kind, i)
				check(t, os.WriteFile(fmt.Sprintf("%s/src/%s%d", s.dir, kind, i), []byte("new"), 0o644))
				check(t, os.WriteFile(path, []byte("old"), 0o644))
				setup(path)
				return path
			}
			for i := range c.mine {
				path := file("mine", i, func(path string) { check(t, unix.Setxattr(path, "security.capability", bind, 0)) })
				switch {
				case i == 0:
					mine = " and preserved the capabilities of " + path
				case i < 3:
					mine += ", " + path
				case i == c.mine-1:
					mine += fmt.Sprintf(" and %d more", c.mine-3)
				}
			}
			for i := range c.theirs {
				path := file("theirs", i, func(path string) {
					check(t, unix.Setxattr(path, "user.origin", []byte("x"), 0))
					check(t, os.Chown(path, hosttest.Stranger, hosttest.Stranger))
				})
				if i == 0 {
					theirs = " and removed the user attributes of " + path
				} else {
					theirs += ", " + path
				}
			}
			for i := range c.same {
				file("same", i, func(string) {})
			}
			s.now()
			want := ""
			switch n := c.mine + c.theirs + c.same; n {
			case 1:
				want = "Would have changed 1 scaffold file"
			default:
				want = fmt.Sprintf("Would have changed %d scaffold files", n)
			}
			if got := s.plan().Message(); got != want+mine+theirs {
				t.Errorf("the plan says %q, not %q", got, want+mine+theirs)
			}
			check(t, s.apply())
			for i := range c.mine {
				if _, err := unix.Getxattr(fmt.Sprintf("%s/out/mine%d", s.dir, i), "security.capability", nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
