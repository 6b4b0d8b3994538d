package exec

import "fmt"

const (
	// maxLogged bounds what is logged of each end of a stream: a command that floods
	// must not fill the disk of the log, nor the memory.
	maxLogged = 64 << 10
	// lineCost is what a line costs in a log beside its own bytes.
	lineCost = 64
)

// outputLog logs what a command prints: the beginning of each stream line by
// line as it comes, and of what is more than that the end, once the command has
// ended.
type outputLog struct {
	emit           func(line, stream string)
	stdout, stderr loggedStream
}

// loggedStream is one stream so far.
type loggedStream struct {
	name   string
	logged int
	// rest are the last lines that were not logged yet, held how much they cost.
	rest    []string
	held    int
	dropped int
}

func newOutputLog(emit func(line, stream string)) *outputLog {
	return &outputLog{emit: emit, stdout: loggedStream{name: "stdout"}, stderr: loggedStream{name: "stderr"}}
}

func (l *outputLog) line(line string, stderr bool) {
	s, cost := &l.stdout, len(line)+lineCost
	if stderr {
		s = &l.stderr
	}
	if len(s.rest) == 0 && s.logged+cost <= maxLogged {
		s.logged += cost
		l.emit(line, s.name)
		return
	}
	s.rest, s.held = append(s.rest, line), s.held+cost
	for s.held > maxLogged && len(s.rest) > 1 {
		s.held -= len(s.rest[0]) + lineCost
		s.rest = s.rest[1:]
		s.dropped++
	}
}

// end logs what was held back.
func (l *outputLog) end() {
	for _, s := range []*loggedStream{&l.stdout, &l.stderr} {
		if s.dropped > 0 {
			l.emit(fmt.Sprintf("… %d lines dropped …", s.dropped), s.name)
		}
		for _, line := range s.rest {
			l.emit(line, s.name)
		}
	}
}
