package fleetcmd

import (
	"fmt"
	"testing"
)

// TestAmbiguous: the error of a name that many targets have names some of them, and where all are.
func TestAmbiguous(t *testing.T) {
	t.Parallel()
	many := []string{"group.all.motd"}
	for i := range 300 {
		many = append(many, fmt.Sprintf("node.n%03d.motd", i))
	}
	const listed = "group.all.motd, node.n000.motd, node.n001.motd, node.n002.motd, node.n003.motd, node.n004.motd, node.n005.motd, node.n006.motd, node.n007.motd, node.n008.motd and 291 more "
	for want, err := range map[string]error{
		"motd is ambiguous; give a full key: " + listed + "(see muster fleet ls motd)":                                                     &ambiguousError{name: "motd", keys: many},
		"motd is ambiguous; give --all, --node n000, --node n001, …, or a full key: " + listed + "(see muster fleet ls motd)":              withFlags(&ambiguousError{name: "motd", keys: many}),
		"motd is not assigned, and several of that name were removed; give a full key: " + listed + "(see muster fleet ls motd --removed)": &ambiguousError{name: "motd", keys: many, areRemoved: true},
		"motd is ambiguous; give --group web, --all, or a full key: group.web.motd, group.all.motd":                                        withFlags(&ambiguousError{name: "motd", keys: []string{"group.web.motd", "group.all.motd"}}),
	} {
		if err.Error() != want {
			t.Errorf("%s\nwant %s", err, want)
		}
	}
}
