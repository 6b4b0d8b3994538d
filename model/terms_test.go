package model_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
)

func TestTermsInWords(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func(t time.Time) string { return t.Format(time.TimeOnly) }
	for want, terms := range map[string]*model.Terms{
		"":                            nil,
		"noop, expires 03:04:06":      {Noop: true, Expires: now.Add(time.Second)},
		"expired 03:04:05, noop":      {Noop: true, Expires: now},
		"drift report, interval 1h":   {Drift: model.DriftReport, Interval: model.Duration(time.Hour)},
		"interval 1m30s, priority -2": {Interval: model.Duration(90 * time.Second), Priority: -2},
		"interval 5m, signed, when a": {Interval: model.Duration(5 * time.Minute), Signed: true, When: "a"},
		"interval 10s":                {Interval: model.Duration(10 * time.Second)},
	} {
		if got := strings.Join(terms.Words(now, clock), ", "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if t1, t2 := (&model.Assignment{Manifest: "muster: {}"}).Terms(false), (&model.Assignment{When: strings.Repeat("ä", 2000)}).Terms(false); t1 != nil || len(t2.When) > 1100 || !strings.HasSuffix(t2.When, "ä …") {
		t.Errorf("%v, %d bytes", t1, len(t2.When))
	}
}
