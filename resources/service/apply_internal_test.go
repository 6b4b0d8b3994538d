package service

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// TestMissing checks the needs of a missing unit: its file or its package, but not the unit that it starts.
func TestMissing(t *testing.T) {
	_, err := missing(nil, &Spec{Common: model.Common{Name: "web.timer"}}, nil, ErrNotFound)
	needs := resource.Prerequisites(err)
	if needs[0] != "path:/etc/systemd/system/web.timer" || !slices.Contains(needs, "package:web") || slices.Contains(needs, "path:/etc/systemd/system/web.service") {
		t.Errorf("it needs %q", needs)
	}
}

// TestSteps puts changes together, each plan the words of its actions.
func TestSteps(t *testing.T) {
	for name, c := range map[string]struct {
		plans []string
		want  []step
	}{
		"nothing":          {want: []step{}},
		"all started":      {[]string{"start", "start", "start"}, []step{{Start, []int{0, 1, 2}}}},
		"started, enabled": {[]string{"start enable", "start enable"}, []step{{Start, []int{0, 1}}, {Enable, []int{0, 1}}}},
		"only enabled":     {[]string{"enable", "start", "enable"}, []step{{Start, []int{1}}, {Enable, []int{0, 2}}}},
		"their order": {
			[]string{"stop disable", "start enable", "enable", "start", "restart", "restart", "stop"},
			[]step{{Stop, []int{0}}, {Start, []int{1, 3}}, {Restart, []int{4, 5}}, {Stop, []int{6}}, {Disable, []int{0}}, {Enable, []int{1, 2}}},
		},
		"the place of another": {[]string{"start enable", "stop disable"}, []step{{Start, []int{0}}, {Stop, []int{1}}, {Disable, []int{1}}, {Enable, []int{0}}}},
	} {
		t.Run(name, func(t *testing.T) {
			plans := make([]resource.Plan, len(c.plans))
			for i, words := range c.plans {
				for _, word := range strings.Fields(words) {
					plans[i].Add(model.Change{Action: word})
				}
			}
			if got := steps(plans); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%v, not %v", got, c.want)
			}
		})
	}
}
