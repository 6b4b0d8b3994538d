package fleetcmd

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestDescribeCutsNoReason: a terminal also shows the whole reason, because the remedy is at its end.
func TestDescribeCutsNoReason(t *testing.T) {
	names, err := kvstore.NewNames("")
	if err != nil {
		t.Fatal(err)
	}
	user, program := hosttest.Terminal(t)
	node := model.Node{NodeState: model.NodeState{Node: "web01", Message: strings.Repeat("the node says ", 20) + "do this"}}
	status := fleet.RolloutStatus{Key: "group.all.motd", Status: fleet.StatusRejected, Reason: strings.Repeat("the reason is ", 20) + "do that"}
	go func() {
		p := print.Printer{Out: program, Err: program}
		screen{Printer: p, names: names, whole: true}.describe(described{Node: view.Node{Node: node, Statuses: []view.Assignment{{RolloutStatus: status}}}}, time.Now())
	}()
	text := ""
	for lines := bufio.NewScanner(user); lines.Scan(); {
		text += lines.Text()
		if strings.HasPrefix(lines.Text(), "next ") {
			break
		}
	}
	for _, want := range []string{node.Message, status.Reason} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
