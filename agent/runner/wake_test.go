package runner

import (
	"reflect"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
)

func TestWeightiestCauseAndFirstTime(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	order := []model.Cause{model.CauseSchedule, model.CauseDrift, model.CauseHealth, model.CauseRequest, model.CauseCommand, model.CauseManifest}
	for i, light := range order {
		for _, heavy := range order[i:] {
			for _, got := range []Wake{
				Wake{Cause: light, At: early}.over(Wake{Cause: heavy, At: late}),
				Wake{Cause: heavy, At: late}.over(Wake{Cause: light, At: early}),
			} {
				if got.Cause != heavy || got.At != early {
					t.Errorf("%s at 1 and %s at 2 give %+v", light, heavy, got)
				}
			}
		}
	}
	if got := (Wake{Cause: model.CauseSchedule, At: late}).over(Wake{}); got.Cause != model.CauseSchedule || got.At != late {
		t.Errorf("nothing changes it to %+v", got)
	}
	s := NewSchedule(nonePending)
	s.Ask("a", Wake{Cause: model.CauseDrift, At: early})
	s.Ask("a", Wake{Cause: model.CauseManifest, At: late})
	if got, _ := s.due.of("a", always); !reflect.DeepEqual(got, Wake{Cause: model.CauseManifest, At: early}) {
		t.Errorf("twice is %+v", got)
	}
}

// TestPartsAreJoined: two partial runs are one run, and a full run includes all of them.
func TestPartsAreJoined(t *testing.T) {
	a, b := model.Ref{Type: "file", Name: "a"}, model.Ref{Type: "file", Name: "b"}
	now := time.Unix(1, 0)
	s := NewSchedule(nonePending)
	s.Ask("m", Wake{Cause: model.CauseDrift, At: now, Part: []model.Ref{a}})
	s.Ask("m", Wake{Cause: model.CauseDrift, At: now, Part: []model.Ref{b}})
	if got, _ := s.due.of("m", always); !reflect.DeepEqual(got.Part, []model.Ref{a, b}) {
		t.Errorf("two parts are %v", got.Part)
	}
	s.Ask("m", Wake{Cause: model.CauseSchedule, At: now})
	s.Ask("m", Wake{Cause: model.CauseDrift, At: now, Part: []model.Ref{b}})
	if got, _ := s.due.of("m", always); got.Part != nil || got.Cause != model.CauseDrift {
		t.Errorf("a part and the whole are %+v", got)
	}
}
