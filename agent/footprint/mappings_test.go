package footprint

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"testing"
)

// of is a mapping as /proc/self/smaps has it.
func of(header, anonymous, swap string) string {
	return header + "\nSize:                 64 kB\nRss:                  64 kB\nAnonymous:      " + anonymous +
		" kB\nLazyFree:              0 kB\nSwap:           " + swap + " kB\nSwapPss:               0 kB\nVmFlags: rd mr mw me\n"
}

func TestReloadable(t *testing.T) {
	for _, c := range []struct {
		name, smaps, want string
	}{
		{"text", of("00400000-00500000 r-xp 00000000 fe:00 42                   /usr/bin/muster", "0", "0"), "[{4194304 5242880}]"},
		{"constants", of("00500000-00600000 r--p 00100000 fe:00 42 /usr/bin/muster", "0", "0"), "[{5242880 6291456}]"},
		{"data", of("00500000-00600000 rw-p 00100000 fe:00 42 /usr/bin/muster", "0", "0"), "[]"},
		{"not readable", of("00500000-00600000 ---p 00100000 fe:00 42 /usr/bin/muster", "0", "0"), "[]"},
		{"shared", of("00500000-00600000 r--s 00100000 fe:00 42 /usr/bin/muster", "0", "0"), "[]"},
		{"relocated by the loader", of("00500000-00600000 r--p 00100000 fe:00 42 /usr/bin/muster", "4", "0"), "[]"},
		{"relocated and swapped", of("00500000-00600000 r--p 00100000 fe:00 42 /usr/bin/muster", "0", "4"), "[]"},
		{"another file", of("00500000-00600000 r--p 00100000 fe:00 42 /usr/lib/libc.so", "0", "0"), "[]"},
		{"another file that begins so", of("00500000-00600000 r--p 00100000 fe:00 42 /usr/bin/muster (deleted)", "0", "0"), "[]"},
		{"no file", of("00500000-00600000 r--p 00000000 00:00 0", "0", "0"), "[]"},
		{"the kernel's", of("7ffc0000-7ffd0000 r-xp 00000000 00:00 0 [vdso]", "0", "0"), "[]"},
		{"the field is missing", "00500000-00600000 r--p 00100000 fe:00 42 /usr/bin/muster\nSwap: 0 kB\n", "[]"},
		{"its fields are those of the next", "00500000-00600000 r--p 00100000 fe:00 42 /usr/bin/muster\n" + of("00600000-00700000 rw-p 0 fe:00 42 /usr/bin/muster", "0", "0"), "[]"},
		{"nothing", "", "[]"},
	} {
		if got := fmt.Sprint(reloadable(c.smaps, "/usr/bin/muster")); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := reloadable(of("00400000-00500000 r-xp 00000000 fe:00 42 /opt/my  muster (deleted)", "0", "0"), "/opt/my  muster (deleted)"); len(got) != 1 {
		t.Errorf("a path with spaces: %v", got)
	}
}

// Touch reads all of the program that Reduce drops, and returns its digest.
func Touch(t *testing.T) string {
	t.Helper()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	sum := sha256.New()
	for _, m := range reloadable(string(smaps), program) {
		if _, err := io.Copy(sum, io.NewSectionReader(memory, int64(m.from), int64(m.to-m.from))); err != nil {
			t.Fatal(err)
		}
	}

	return fmt.Sprintf("%x", sum.Sum(nil))
}
