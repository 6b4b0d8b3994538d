package runner

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestSelectCandidates: without names it selects the manifests that apply, and with names some of each
// name.
func TestSelectCandidates(t *testing.T) {
	t.Parallel()
	all := []candidate{
		{key: "group.db.motd", name: "motd"},
		{key: "group.web.app", name: "app", active: true, applies: true},
		{key: "group.web.broken", name: "broken", applies: true},
		{key: "group.web.off", name: "off"},
		{key: "node.web01.motd", name: "motd", active: true, applies: true},
		{key: "node.web01.off", name: "off"},
	}
	for _, c := range []struct {
		names         []string
		want, unknown string
	}{
		{nil, "[group.web.app group.web.broken node.web01.motd]", ""},
		{[]string{"motd"}, "[node.web01.motd]", ""},
		{[]string{"off", "app"}, "[group.web.app group.web.off node.web01.off]", ""},
		{[]string{"app", "nope", "none"}, "[]", "nope"},
	} {
		about, err := selectCandidates(all, c.names)
		keys := []string{}
		for _, one := range about {
			keys = append(keys, one.key)
		}
		if fmt.Sprint(keys) != c.want || (err != nil) != (c.unknown != "") || err != nil && (!errors.Is(err, errUnassigned) || !strings.HasPrefix(err.Error(), c.unknown+": ")) {
			t.Errorf("%v: %v, %v", c.names, keys, err)
		}
	}
	if about, err := selectCandidates(nil, nil); len(about) > 0 || err != nil {
		t.Errorf("of nothing: %v, %v", about, err)
	}
}
