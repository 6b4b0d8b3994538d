package exec

import "fmt"

const (
	// maxLogged limits the logged part of each end of a stream, so that a command cannot fill the
	// disk or the memory.
	maxLogged = 64 << 10
	// lineCost is the overhead of a line in a log.
	lineCost = 64
)

// outputLog logs the output of a command: the beginning of each stream line by line during the run, and
// the end of a longer stream after the command ended.
type outputLog struct {
	emit           func(line, stream string)
	stdout, stderr loggedStream
}

// loggedStream is one stream of the output.
type loggedStream struct {
	name   string
	logged int
	// rest holds the last lines that are not logged yet, held is their cost.
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

// end logs the held lines.
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
