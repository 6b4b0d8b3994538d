package scaffold

import (
	"archive/tar"
	"bytes"
	"io"
	"strings"
	"testing"
)

// TestReceive checks that muster accepts only local names and files within the limit from the child,
// and detects a child that ended before its last entry.
func TestReceive(t *testing.T) {
	type entry struct {
		kind, name string
		size       int64
	}
	for name, tc := range map[string]struct {
		entries []entry
		files   int
		want    string
	}{
		"complete":        {[]entry{{kindRendered, "a", 1}, {kindWritten, "d/b", 1}, {kindEnd, "end", 0}}, 2, ""},
		"written again":   {[]entry{{kindWritten, "b", 1}, {kindWritten, "b", 1}, {kindEnd, "end", 0}}, 1, ""},
		"no last entry":   {[]entry{{kindRendered, "a", 1}}, 1, "unexpected EOF"},
		"above":           {[]entry{{kindWritten, "../b", 1}}, 0, `invalid entry "../b"`},
		"absolute":        {[]entry{{kindWritten, "/etc/b", 1}}, 0, `invalid entry "/etc/b"`},
		"above, deeper":   {[]entry{{kindWritten, "a/../../b", 1}}, 0, `invalid entry "a/../../b"`},
		"too large":       {[]entry{{kindWritten, "b", maxBytes + 1}}, 0, `invalid entry "b"`},
		"no such kind":    {[]entry{{"other", "b", 0}}, 0, `invalid entry "b"`},
		"cut in the file": {[]entry{{kindRendered, "a", 1 << 20}}, 0, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			w := tar.NewWriter(&out)
			for _, e := range tc.entries {
				if err := w.WriteHeader(&tar.Header{Name: e.name, Size: e.size, Format: tar.FormatPAX, PAXRecords: map[string]string{recordKind: e.kind}}); err != nil {
					t.Fatal(err)
				}
				if e.size < 1<<20 {
					if _, err := io.WriteString(w, strings.Repeat("x", int(e.size))); err != nil {
						t.Fatal(err)
					}
				}
			}
			r := rendering{spec: &Spec{}, secret: map[string]bool{}, source: []sourceFile{{Name: []byte("a")}}}
			got := ""
			if err := r.receive(tar.NewReader(&out)); err != nil {
				got = err.Error()
			}
			if got != tc.want || len(r.files) != tc.files {
				t.Errorf("%d files, error %q", len(r.files), got)
			}
		})
	}
}
