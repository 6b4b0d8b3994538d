package metrics

import (
	"encoding/json"
	"sync"

	"github.com/musterfleet/muster/model/registration"
)

// maxAnswers is the maximum number of cached answers per reading.
const maxAnswers = 64

// answers caches the texts of the last reading, by filter, because they may be long and many clients get the same one.
type answers struct {
	mu sync.Mutex
	// of is the reading. The reference keeps its memory from being reused.
	of    []registration.Registration
	texts map[registration.Filter][]byte
}

// text returns the targets of a filter as JSON; it calls warn with targets that are not cached yet.
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

// isSame reports whether both slices are the same reading.
func isSame(a, b []registration.Registration) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
