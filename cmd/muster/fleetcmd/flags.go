package fleetcmd

import (
	"fmt"
	"time"

	"github.com/choria-io/fisk"
)

// ParseTime parses a time, or a duration from now: after it with sign 1, before it
// with -1. The words today and yesterday mean the start of that day, local time.
func ParseTime(text string, now time.Time, sign time.Duration) (time.Time, error) {
	if d, err := fisk.ParseDuration(text); err == nil {
		return now.Add(sign * d).UTC(), nil
	}
	local := now.Local()
	midnight := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.Local)
	switch text {
	case "today":
		return midnight.UTC(), nil
	case "yesterday":
		return midnight.AddDate(0, 0, -1).UTC(), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at.UTC(), nil
		}
	}

	return time.Time{}, fmt.Errorf("%q: neither a duration such as 90m or 2d nor a time such as 2006-01-02T15:04:05Z", text)
}
