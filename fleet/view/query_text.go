package view

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// ValueText returns a value for users: times in the local time zone, durations with a unit.
func ValueText(v any) string {
	switch v := v.(type) {
	case time.Time:
		if v.IsZero() {
			return "-"
		}
		return v.Local().Format(model.TimeFormat)
	case time.Duration:
		if v == 0 {
			return "-"
		}
		return model.ShortDuration(v)
	}
	if text := ValueCSV(v); text != "" {
		return text
	}

	return "-"
}

// ValueCSV returns a value as in JSON, without quotes around texts. Lists and labels are on one line.
func ValueCSV(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case time.Duration:
		return strconv.FormatInt(int64(v), 10)
	case time.Time:
		if v.IsZero() {
			return ""
		}
		return v.UTC().Format(time.RFC3339Nano)
	case []string:
		return strings.Join(v, ",")
	case map[string]string:
		var all []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, key+"="+v[key])
		}
		return strings.Join(all, ",")
	case []any, map[string]any:
		text, err := json.Marshal(v)
		if err != nil {
			return err.Error()
		}
		return string(text)
	default:
		return fmt.Sprint(v)
	}
}

// IsTextValue reports whether a value is free text, which a spreadsheet may evaluate as a formula.
func IsTextValue(v any) bool {
	switch v.(type) {
	case string, []string, map[string]string, []any, map[string]any:
		return true
	default:
		return false
	}
}
