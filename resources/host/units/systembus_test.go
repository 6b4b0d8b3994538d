package units_test

import (
	"testing"

	"github.com/musterfleet/muster/resources/host/units"
)

func TestObjectPath(t *testing.T) {
	for name, want := range map[string]string{
		"web.service": "web_2eservice", "1st.timer": "_31st_2etimer", "a-b@c:d.service": "a_2db_40c_3ad_2eservice", `c\x2b.service`: "c_5cx2b_2eservice",
		"with_line.socket": "with_5fline_2esocket",
	} {
		if got := units.ObjectPath(name); string(got) != units.UnitPath+want || !got.IsValid() {
			t.Errorf("%s is %s", name, got)
		}
	}
}
