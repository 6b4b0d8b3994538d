package paths

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// captured is of a machine with a bind mount and a path with a space, a tab, a backslash and a
// letter of two bytes.
const captured = `22 27 0:20 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw,errors=remount-ro
41 27 0:35 / /mnt/a\040b\011c\134d rw - tmpfs none rw,size=4096k
42 27 254:0 /etc/motd /srv/motd rw,relatime shared:1 - ext4 /dev/root rw
43 27 0:36 / /mnt/é rw - tmpfs none rw
`

func parsed(t *testing.T, text string) map[Mount]struct{} {
	t.Helper()
	out, err := ParseMounts([]byte(text))
	if err != nil {
		t.Fatal(err)
	}

	return out
}

func TestParse(t *testing.T) {
	t.Parallel()
	got := parsed(t, captured+"45 27 0:1 / relative rw - x x rw\n")
	want := []Mount{
		{"22", "27", "0:20", "/", "/sys"}, {"27", "1", "254:0", "/", "/"}, {"41", "27", "0:35", "/", "/mnt/a b\tc\\d"},
		{"42", "27", "254:0", "/etc/motd", "/srv/motd"}, {"43", "27", "0:36", "/", "/mnt/é"},
	}
	for _, m := range want {
		if _, is := got[m]; !is {
			t.Errorf("without %+v", m)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d mounts: %v", len(got), got)
	}
}

func TestChanged(t *testing.T) {
	t.Parallel()
	before := parsed(t, captured)
	for text, want := range map[string][]string{
		captured: nil,
		captured + "50 27 0:40 / /mnt/x rw - tmpfs none rw\n51 50 0:41 / /mnt/x rw - tmpfs none rw\n": {"/mnt/x"},
		// Other options change nothing that is there.
		strings.Replace(captured, "/srv/motd rw", "/srv/motd ro", 1): nil,
		// A mount in place of another, and a moved one.
		strings.Replace(captured, "/etc/motd", "/etc/issue", 1): {"/srv/motd"},
		strings.Replace(captured, "/mnt/é", "/mnt/e", 1):        {"/mnt/e", "/mnt/é"},
		"": {"/", "/mnt/a b\tc\\d", "/mnt/é", "/srv/motd", "/sys"},
	} {
		if got := ChangedMounts(before, parsed(t, text)); !slices.Equal(got, want) {
			t.Errorf("changed: %q, not %q", got, want)
		}
	}
}

func TestIsWithin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, dir string
		want      bool
	}{{"/a", "/a", true}, {"/a/b", "/a", true}, {"/ab", "/a", false}, {"/a", "/a/b", false}, {"/a", "/", true}, {"/", "/", true}, {"/", "/a", false}} {
		if got := IsWithin(c.path, c.dir); got != c.want {
			t.Errorf("%s within %s: %t", c.path, c.dir, got)
		}
	}
}

func TestBelow(t *testing.T) {
	t.Parallel()
	// /alias is a bind mount of /srv. A file system and a file are mounted below /srv/app.
	table := parsed(t, captured+`50 27 254:0 /srv /alias rw - ext4 /dev/root rw
51 27 0:40 / /srv/app/data rw - tmpfs none rw
52 51 0:41 / /srv/app/data/deep rw - tmpfs none rw
53 27 254:0 /etc/motd /srv/app/f rw - ext4 /dev/root rw
54 27 254:0 /self /self rw - ext4 /dev/root rw
60 99 0:50 / /chroot/proc rw - proc proc rw
61 99 254:0 /srv /chroot/s/sub rw - ext4 /dev/root rw
`)
	for _, c := range []struct{ id, dir, name, want string }{
		{"27", "/srv", "app", "/srv/app/data"},
		{"50", "/alias", "app", "/srv/app/data"},
		{"27", "/srv/app", ".", "/srv/app/data"},
		{"27", "/srv/app", "data", "/srv/app/data"},
		{"27", "/srv/app", "f", "/srv/app/f"},
		{"27", "/srv/app", "g", ""},
		{"27", "/srv/app", "dat", ""},
		{"51", "/srv/app/data", "deep", "/srv/app/data/deep"},
		{"51", "/srv/app/data", "srv", ""},
		{"27", "/", "self", "/self"},
		{"54", "/self", ".", ""},
		// The table of a process in a chroot lacks the mount of its root.
		{"99", "/chroot", "s", "/chroot/s/sub"},
		{"99", "/chroot/s", ".", "/chroot/s/sub"},
		{"99", "/srv", "app", ""},
	} {
		got := ""
		if found := mountsBelow(table, c.id, c.dir, c.name); len(found) > 0 {
			got = found[0].mount.Path
		}
		if got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestTable has the mounts of this machine, and ends when it is closed.
func TestTable(t *testing.T) {
	t.Parallel()
	table, err := OpenMountTable()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(ChangedMounts(nil, table.known), "/proc") {
		t.Errorf("without /proc: %v", table.known)
	}
	ended := make(chan error)
	go func() {
		for {
			if _, err := table.Wait(); err != nil {
				ended <- err
				return
			}
		}
	}()
	table.Close()
	if err := <-ended; !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

// FuzzParse reads any text without harm. Whatever is read of it is a path, and the same again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(captured))
	f.Add([]byte(`1 2 0:3 \057 /\1\18\177\400\ rw`))
	f.Add([]byte("1 2 3 / /\x00\n\n   \n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, _ := ParseMounts(text)
		for m := range got {
			if !strings.HasPrefix(m.Path, "/") {
				t.Errorf("a path is %q", m.Path)
			}
		}
		again, _ := ParseMounts(text)
		if changed := ChangedMounts(got, again); len(changed) != 0 {
			t.Errorf("changed without a change: %q", changed)
		}
	})
}
