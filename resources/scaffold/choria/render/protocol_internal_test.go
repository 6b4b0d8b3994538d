package render

import (
	"bufio"
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestWhatIsSaidComesBack(t *testing.T) {
	type text string
	list := []any{nil, time.Unix(1, 2).UTC(), true, false, 0, -1, math.MaxInt, int64(7), uint64(math.MaxUint64), 1.0, math.Inf(1), "", "a\xff\x00\n", []byte("b"), []any{}, map[string]any{}}
	for name, tc := range map[string]struct{ v, want any }{
		"list":       {list, list},
		"mapping":    {map[string]any{"": 1, "a": list}, map[string]any{"": 1, "a": list}},
		"long":       {strings.Repeat("x", 200_000), strings.Repeat("x", 200_000)},
		"other maps": {map[string]string{"a": "b"}, map[string]any{"a": "b"}},
		"lists":      {[]string{"a"}, []any{"a"}},
		"named":      {text("a"), "a"},
		"pointer":    {new(3), 3},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := say(&out, tc.v); err != nil {
				t.Fatal(err)
			}
			var h Hearing
			var got any
			for line := range strings.Lines(out.String()) {
				if len(line) > 64<<10 {
					t.Error("a line of", len(line))
				}
				v, ends, err := h.Line(strings.TrimSuffix(line, "\n"))
				if err != nil {
					t.Fatal(err)
				}
				if ends {
					got = v
				}
			}
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("said, got %#v", got)
			}
			out.Reset()
			if err := Send(&out, tc.v); err != nil {
				t.Fatal(err)
			}
			message, err := receive(bufio.NewReader(&out))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := decode(message); err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("sent, got %#v, %v", got, err)
			}
		})
	}
}

func TestWhatCannotBeSaid(t *testing.T) {
	itself := map[string]any{}
	itself["a"] = []any{itself}
	for _, v := range []any{func() {}, map[int]string{}, struct{}{}, []any{make(chan int)}} {
		if err := say(&bytes.Buffer{}, v); err == nil {
			t.Errorf("%T was said", v)
		}
	}
	if err := say(&bytes.Buffer{}, itself); !errors.Is(err, errDeep) {
		t.Error(err)
	}
	var h Hearing
	for _, line := range []string{"", "x", ".?", ".", ".YQ==", "+!"} {
		if v, _, err := h.Line(line); !errors.Is(err, errDamaged) {
			t.Errorf("%q gives %v, %v", line, v, err)
		}
		h = Hearing{}
	}
}

// Nothing that is said ends muster, nor takes more memory than it has bytes.
func FuzzHearing(f *testing.F) {
	for _, v := range []any{nil, []any{1, "a", 2.5}, map[string]any{"a": true}} {
		message, err := encode(nil, v, 0)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(message)
	}
	f.Add([]byte("l\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Add([]byte("s\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, message []byte) {
		v, err := decode(message)
		if err != nil {
			return
		}
		if _, err := encode(nil, v, 0); err != nil {
			t.Error(err)
		}
	})
}
