package model_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
)

// FuzzDecodeGroups checks that decoded groups are valid names and limited in number.
func FuzzDecodeGroups(f *testing.F) {
	many := make([]string, model.MaxGroups+1)
	for i := range many {
		many[i] = fmt.Sprintf("g%d", i)
	}
	for _, groups := range []string{`["web","db"]`, `[]`, `["all"]`, `["web","web"]`, `["a.b"]`, `[">"]`, `["_x"]`, `[""]`, `["` + strings.Join(many, `","`) + `"]`} {
		f.Add([]byte(`{"protocol":"io.muster.v1.groups","groups":` + groups + `}`))
	}
	f.Add([]byte(`{"protocol":"io.muster.v1.labels","groups":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := model.DecodeGroups(data)
		if err != nil {
			if !errors.Is(err, model.ErrInvalidControl) {
				t.Error(err)
			}
			return
		}
		if err := model.CheckNode("web01", g.Groups); err != nil || len(g.Groups) > model.MaxGroups {
			t.Errorf("%d groups, %v", len(g.Groups), err)
		}
		if families := model.Families("web01", g.Groups); len(families) != len(g.Groups)+2 {
			t.Errorf("%q are the families %q", g.Groups, families)
		}
	})
}
