package schedule

import (
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
)

func TestWeightiestCauseAndFirstTime(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	order := []model.Cause{model.CauseSchedule, model.CauseDrift, model.CauseHealth, model.CauseCommand, model.CauseManifest}
	for i, light := range order {
		for _, heavy := range order[i:] {
			for _, got := range []Wake{
				Wake{light, early}.over(Wake{heavy, late}),
				Wake{heavy, late}.over(Wake{light, early}),
			} {
				if got.Cause != heavy || got.At != early {
					t.Errorf("%s at 1 and %s at 2 give %+v", light, heavy, got)
				}
			}
		}
	}
	if got := (Wake{model.CauseSchedule, late}).over(Wake{}); got.Cause != model.CauseSchedule || got.At != late {
		t.Errorf("nothing changes it to %+v", got)
	}
	s := New()
	s.Ask("a", model.CauseDrift, early)
	s.Ask("a", model.CauseManifest, late)
	if len(s.due) != 1 || s.due["a"] != (Wake{model.CauseManifest, early}) {
		t.Errorf("twice is %+v", s.due)
	}
}
