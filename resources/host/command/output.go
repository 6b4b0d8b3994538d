package command

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
)

// outputEnd is how much is kept of each end of a stream.
const outputEnd = 64 << 10

// maxLine is the longest line that OnLine gets in one piece.
const maxLine = 64 << 10

// Output is one stream of a command: its first and last 64 KiB. Shorter output
// is all in Head, or in Head and Tail.
type Output struct {
	Head, Tail []byte
	// Dropped counts the bytes between them that were not kept.
	Dropped int64
}

// String returns the kept output, with a line for what was dropped.
func (o Output) String() string {
	if o.Dropped == 0 {
		return string(o.Head) + string(o.Tail)
	}

	return fmt.Sprintf("%s\n… %d bytes dropped …\n%s", o.Head, o.Dropped, o.Tail)
}

// LastLines returns the last n lines without a line end. Trailing empty lines
// do not count.
func (o Output) LastLines(n int) string {
	text := strings.TrimRight(o.String(), " \t\r\n")
	if n <= 0 {
		return ""
	}
	at := len(text)
	for range n {
		if at = strings.LastIndexByte(text[:at], '\n'); at < 0 {
			return text
		}
	}

	return text[at+1:]
}

// Excerpt returns the end of a text for an error: at most 10 lines and 2 KiB of
// valid UTF-8.
func Excerpt(text string) string {
	const maxLines, maxBytes = 10, 2 << 10
	text = Output{Head: []byte(text)}.LastLines(maxLines)
	if len(text) > maxBytes {
		text = "…" + text[len(text)-maxBytes:]
	}

	return strings.ToValidUTF8(text, "\uFFFD")
}

// stream keeps what a command writes to one of its streams.
type stream struct {
	head []byte
	// ring holds the last bytes after head; at is its oldest byte once it is full.
	ring  []byte
	at    int
	total int64
	lines lines
}

// Write never fails: a command must not notice that its output is too long.
func (s *stream) Write(b []byte) (int, error) {
	s.lines.write(b)
	s.total += int64(len(b))
	n := len(b)
	take := min(outputEnd-len(s.head), len(b))
	s.head = append(s.head, b[:take]...)
	s.keep(b[take:])

	return n, nil
}

// keep overwrites the oldest bytes of the ring.
func (s *stream) keep(b []byte) {
	if len(b) >= outputEnd {
		s.ring, s.at = append(s.ring[:0], b[len(b)-outputEnd:]...), 0
		return
	}
	grow := min(outputEnd-len(s.ring), len(b))
	s.ring = append(s.ring, b[:grow]...)
	for b = b[grow:]; len(b) > 0; {
		n := copy(s.ring[s.at:], b)
		b, s.at = b[n:], (s.at+n)%outputEnd
	}
}

// end flushes the last line and returns the output.
func (s *stream) end() Output {
	s.lines.flush()
	tail := append(bytes.Clone(s.ring[s.at:]), s.ring[:s.at]...)

	return Output{Head: s.head, Tail: tail, Dropped: s.total - int64(len(s.head)) - int64(len(tail))}
}

// lines splits a stream into lines. Without emit it does nothing.
type lines struct {
	emit    func(line string)
	pending []byte
	// within reports whether pending continues a line.
	within bool
}

func (l *lines) write(b []byte) {
	if l.emit == nil {
		return
	}
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		piece := b
		if end >= 0 {
			piece = b[:end]
		}
		room := maxLine - len(l.pending)
		if len(piece) > room {
			l.pending = append(l.pending, piece[:room]...)
			l.emitPending(true)
			b = b[room:]
			continue
		}
		l.pending = append(l.pending, piece...)
		if end < 0 {
			return
		}
		l.emitPending(false)
		b = b[end+1:]
	}
}

// emitPending emits what there is of a line. more reports whether it goes on: where
// a line is cut stands an ellipsis, for whoever must know that a word may be cut too.
func (l *lines) emitPending(more bool) {
	line := string(bytes.TrimSuffix(l.pending, []byte("\r")))
	if l.within {
		line = "…" + line
	}
	if more {
		line += "…"
	}
	l.emit(line)
	l.pending, l.within = l.pending[:0], more
}

// flush emits a last line without an end.
func (l *lines) flush() {
	if len(l.pending) > 0 {
		l.emitPending(false)
	}
}

// streams returns the output streams of a command. onLine, unless nil, gets the
// lines of both; its calls never overlap.
func streams(onLine func(line string, stderr bool)) (stdout, stderr *stream) {
	if onLine == nil {
		return &stream{}, &stream{}
	}
	var calling sync.Mutex
	to := func(stderr bool) *stream {
		return &stream{lines: lines{emit: func(line string) {
			calling.Lock()
			defer calling.Unlock()
			onLine(line, stderr)
		}}}
	}

	return to(false), to(true)
}
