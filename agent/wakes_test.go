package agent

import (
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
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
	asked := due{}
	asked.add("a", wake{model.CauseDrift, early})
	asked.add("a", wake{model.CauseManifest, late})
	if len(asked) != 1 || asked["a"] != (wake{model.CauseManifest, early}) {
		t.Errorf("twice is %+v", asked)
	}
}

func TestWakesAreOne(t *testing.T) {
	w := &wakes{signal: tasks.NewSignal()}
	w.assignmentsChanged()
	w.assignmentsChanged()
	w.retryNow()
	if len(w.signal) != 1 || !w.assignments.Swap(false) || !w.retry.Swap(false) || w.assignments.Load() {
		t.Error("three wakes are not one")
	}
}
