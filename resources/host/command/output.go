package command

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
)

// outputEnd is the number of bytes that are retained of each end of a stream.
const outputEnd = 64 << 10

// maxLine is the longest line that OnLine receives in one part.
const maxLine = 64 << 10

// Output is one stream of a command: its first and last 64 KiB. Shorter output is in Head, or in Head and
// Tail.
type Output struct {
	Head, Tail []byte
	// Dropped is the number of omitted bytes between them.
	Dropped int64
}

// String returns the retained output, with a line for the omitted bytes.
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

type stream struct {
	head []byte
	// ring contains the last bytes after head. at is the index of its oldest byte when it is full.
	ring  []byte
	at    int
	total int64
	lines lines
}

// Write never fails, so that a command does not notice that its output is too long.
func (s *stream) Write(b []byte) (int, error) {
	s.lines.write(b)
	s.total += int64(len(b))
	n := len(b)
	take := min(outputEnd-len(s.head), len(b))
	s.head = append(s.head, b[:take]...)
	s.keep(b[take:])

	return n, nil
}

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

// emitPending emits the buffered part of a line. If more is set, an ellipsis marks the cut, because it may
// divide a word.
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

func (l *lines) flush() {
	if len(l.pending) > 0 {
		l.emitPending(false)
	}
}

// streams returns the output streams of a command. onLine, unless nil, receives the lines of both. Its calls
// never overlap.
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
