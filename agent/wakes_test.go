package agent

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
			for _, got := range []wake{
				wake{light, early}.over(wake{heavy, late}),
				wake{heavy, late}.over(wake{light, early}),
			} {
				if got.cause != heavy || got.at != early {
					t.Errorf("%s at 1 and %s at 2 give %+v", light, heavy, got)
				}
			}
		}
	}
	if got := (wake{model.CauseSchedule, late}).over(wake{}); got.cause != model.CauseSchedule || got.at != late {
		t.Errorf("nothing changes it to %+v", got)
	}
	q := newWakes()
	q.run("a", wake{model.CauseDrift, early})
	q.run("a", wake{model.CauseManifest, late})
	q.assignmentsChanged()
	if len(q.signal) != 1 {
		t.Error("three wakes are not one")
	}
	if w := q.take(); w.due["a"] != (wake{model.CauseManifest, early}) || !w.assignments || w.retry {
		t.Errorf("took %+v", w)
	}
	if w := q.take(); len(w.due) != 0 || w.assignments {
		t.Errorf("what was taken is there again: %+v", w)
	}
}
