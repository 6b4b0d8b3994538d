package ask

import (
	"strconv"
	"strings"
	"time"
)

// ParseUntil parses the end of a pause: a duration from now, such as 2h or 3d, or a time with its zone. An empty text is
// no end. The error is a *Refusal.
func ParseUntil(text string, now time.Time) (time.Time, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return time.Time{}, nil
	}
	if days, is := strings.CutSuffix(text, "d"); is {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n < 100_000 {
			return now.UTC().AddDate(0, 0, n).Truncate(time.Second), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.UTC().Add(d).Truncate(time.Second), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC().Truncate(time.Second), nil
		}
	}

	return time.Time{}, refuse("%q is neither a duration such as 90m or 2d nor a time such as 2006-01-02T15:04:05Z", text)
}
