package metrics

import (
	"encoding/json"
	"sync"

	"github.com/musterfleet/muster/model/registration"
)

// maxAnswers is how many answers of one reading are kept.
const maxAnswers = 64

// answers are those to what was read last, by filter: many get the same text, which may be long.
type answers struct {
	mu sync.Mutex
	// of is the reading. While it is kept, no other one has its place in memory.
	of    []registration.Registration
	texts map[registration.Filter][]byte
}

// text returns the targets of a filter as JSON; warn is called with those of which there is no text yet.
func (a *answers) text(all []registration.Registration, filter registration.Filter, warn func([]registration.Registration)) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.texts == nil || !isSame(a.of, all) {
		a.of, a.texts = all, map[registration.Filter][]byte{}
	}
	if text, known := a.texts[filter]; known {
		return text, nil
	}
	selected := filter.Of(all)
	warn(selected)
	text, err := json.Marshal(registration.Targets(selected))
	if err == nil {
		if len(a.texts) >= maxAnswers {
			clear(a.texts)
		}
		a.texts[filter] = text
	}

	return text, err
}

// isSame reports whether both are one reading.
func isSame(a, b []registration.Registration) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
