package e2e

import (
	"strings"
	"testing"
)

// TestANodeWithAnUnreadableStateStays in all lists. Otherwise it would look as if no node missed its
// assignments.
func TestANodeWithAnUnreadableStateStays(t *testing.T) {
	t.Parallel()
	f := newSignFleet(t)
	f.put([]byte(manifestOf("assigned")))
	for node, state := range map[string]string{
		"web01": `{"protocol":"io.muster.v1.node","node":"web01","version":"1","groups":["web"],"silent_after":"never"}`,
		"web02": `garbage`,
		"db01":  `{"protocol":"io.muster.v1.node","node":"db01","version":"1","groups":["db"],"silent_after":"never"}`,
	} {
		if _, err := f.nc.Request("$KV.MUSTER_NODES."+node+".state", []byte(state), deadline); err != nil {
			t.Fatal(err)
		}
	}
	list := f.good("fleet", "nodes")
	for _, node := range []string{"web01", "web02", "db01"} {
		if row := rowOf(list, node); !strings.Contains(row, "unreadable") || !strings.Contains(row, "its state cannot be read: ") {
			t.Errorf("the row of %s is %q in\n%s", node, row, list)
		}
	}
	if list := f.good("fleet", "nodes", "--group", "web"); rowOf(list, "web01") == "" || rowOf(list, "web02") == "" || rowOf(list, "db01") != "" {
		t.Errorf("in the group:\n%s", list)
	}
	code, text := f.run("fleet", "wait", "motd", "--timeout", "0")
	if code != 1 || !strings.Contains(text, "is not up to date on 2 of 2 nodes") || !strings.Contains(rowOf(text, "web01"), "unreadable") || rowOf(text, "db01") != "" {
		t.Errorf("wait: %d\n%s", code, text)
	}
}

// rowOf returns the row of a table that begins with a word, empty for none.
func rowOf(table, word string) string {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, word+" ") {
			return line
		}
	}

	return ""
}
