package assign_test

import (
	"testing"

	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/model"
)

// TestReplacement: a later revision replaces an earlier one unless both assign the same.
func TestReplacement(t *testing.T) {
	t.Parallel()
	at := func(revision uint64, text string) model.Entry {
		return model.Entry{Key: "group.web.motd", Revision: revision, Value: []byte(text)}
	}
	removed := model.Entry{Key: "group.web.motd", Revision: 9, Deleted: true}
	for name, c := range map[string]struct {
		all  []model.Entry
		want uint64
	}{
		"none is stored":              {nil, 0},
		"the newest":                  {[]model.Entry{at(2, "a"), at(7, "b")}, 0},
		"another one":                 {[]model.Entry{at(7, "b"), at(8, "a"), at(9, "c")}, 9},
		"the same again":              {[]model.Entry{at(7, "b"), at(8, "a"), at(9, "b")}, 0},
		"removed":                     {[]model.Entry{at(7, "b"), removed}, 9},
		"it is not stored any more":   {[]model.Entry{at(8, "a"), at(9, "b")}, 9},
		"those of a recreated bucket": {[]model.Entry{at(1, "a")}, 0},
	} {
		by, is := assign.Replacement(c.all, 7)
		if is != (c.want > 0) || is && by.Revision != c.want {
			t.Errorf("%s: %d %t, want %d", name, by.Revision, is, c.want)
		}
	}
}
