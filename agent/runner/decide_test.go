package runner

import "testing"

func TestDecide(t *testing.T) {
	for name, c := range map[string]struct {
		found findings
		want  verdict
	}{
		"a run, all well":                      {findings{by: byRun}, verdict{reset: true}},
		"a run, well again":                    {findings{by: byRun, failing: true}, verdict{reset: true}},
		"a repair that helped":                 {findings{by: byRepair, failing: true}, verdict{reset: true}},
		"a pass, all well":                     {findings{by: byPass}, verdict{reset: true}},
		"a pass, well again":                   {findings{by: byPass, failing: true}, verdict{reset: true, run: true}},
		"a run, critical":                      {findings{by: byRun, critical: true, mayRepair: true}, verdict{run: true, refresh: true}},
		"a pass, critical":                     {findings{by: byPass, critical: true, mayRepair: true}, verdict{run: true, refresh: true}},
		"a pass, critical, too early":          {findings{by: byPass, critical: true}, verdict{}},
		"a repair that did not help":           {findings{by: byRepair, critical: true, mayRepair: true}, verdict{extend: true}},
		"a repair that did not come to it":     {findings{by: byRepair, unknown: true, mayRepair: true}, verdict{extend: true}},
		"a run that did not come to it":        {findings{by: byRun, unknown: true, mayRepair: true}, verdict{}},
		"a pass that did not come to it":       {findings{by: byPass, unknown: true, failing: true}, verdict{}},
		"critical although a run is impending": {findings{by: byRun, critical: true, failing: true, mayRepair: true}, verdict{run: true, refresh: true}},
	} {
		if got := decide(c.found); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
