package command

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// numbered is text without repeated parts.
func numbered(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i/251)
	}

	return b
}

func TestStreamKeepsHeadAndTail(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, outputEnd - 1, outputEnd, outputEnd + 1, 2*outputEnd - 1, 2 * outputEnd, 2*outputEnd + 1, 3*outputEnd + 17, 10 * outputEnd} {
		for _, largest := range []int{1000, outputEnd, 3 * outputEnd} {
			all := numbered(size)
			s := &stream{}
			for rest := all; len(rest) > 0; {
				n := min(1+random.IntN(largest), len(rest))
				if written, err := s.Write(rest[:n]); written != n || err != nil {
					t.Fatalf("wrote %d of %d: %v", written, n, err)
				}
				rest = rest[n:]
			}
			o := s.end()
			head := min(size, outputEnd)
			tail := min(size-head, outputEnd)
			if !bytes.Equal(o.Head, all[:head]) || !bytes.Equal(o.Tail, all[size-tail:]) || o.Dropped != int64(size-head-tail) {
				t.Errorf("%d bytes in pieces of up to %d: head %d, tail %d, dropped %d", size, largest, len(o.Head), len(o.Tail), o.Dropped)
			}
		}
	}
}

func TestOutputString(t *testing.T) {
	for want, o := range map[string]Output{
		"":                                 {},
		"headtail":                         {Head: []byte("head"), Tail: []byte("tail")},
		"head\n… 12 bytes dropped …\ntail": {Head: []byte("head"), Tail: []byte("tail"), Dropped: 12},
	} {
		if got := o.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestOutputLastLines(t *testing.T) {
	o := Output{Head: []byte("one\ntwo\n"), Tail: []byte("three\n\nfour\n \n\n")}
	for n, want := range map[int]string{0: "", 1: "four", 2: "\nfour", 3: "three\n\nfour", 5: "one\ntwo\nthree\n\nfour", 9: "one\ntwo\nthree\n\nfour"} {
		if got := o.LastLines(n); got != want {
			t.Errorf("the last %d are %q, want %q", n, got, want)
		}
	}
	if got := (Output{}).LastLines(3); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestLinesAreTheSameHoweverTheyCome(t *testing.T) {
	long := strings.Repeat("l", maxLine)
	for text, want := range map[string][]string{
		"":                            nil,
		"one":                         {"one"},
		"one\n":                       {"one"},
		"one\r\n\ntwo\n":              {"one", "", "two"},
		long + "\nx":                  {long, "x"},
		long + "x\n":                  {long + "…", "…x"},
		long + long + "\n" + "\n":     {long + "…", "…" + long, ""},
		"a" + long + long + "b\nlast": {"a" + long[1:] + "…", "…" + long + "…", "…lb", "last"},
	} {
		for _, piece := range []int{1, 7, 4096, 3 * maxLine} {
			var got []string
			l := lines{emit: func(line string) { got = append(got, line) }}
			for chunk := range slices.Chunk([]byte(text), piece) {
				l.write(chunk)
			}
			l.flush()
			if !slices.Equal(got, want) {
				t.Errorf("%d bytes in pieces of %d: %d lines, want %d", len(text), piece, len(got), len(want))
			}
		}
	}
}
