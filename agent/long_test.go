package agent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
)

// mostBytes is what a server takes as one message by default.
const mostBytes = 1 << 20

// limitMessages makes the server refuse larger messages.
func (s *stream) limitMessages(most int) {
	s.refuse = func(r model.Report) bool {
		b, err := json.Marshal(r)
		return err != nil || len(b) > most
	}
}

// TestAServerThatTakesLittle gets reports cut to its limit.
func TestAServerThatTakesLittle(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.stream.max = 32 << 10
		n.stream.limitMessages(32 << 10)
		n.start()
		n.put("group.all.motd", "motd", "hello\n")
		n.take()
		n.bucket.put("group.all.motd", "muster:\n  resources:\n    - file:\n"+strings.Repeat("        - /x: {ownr: \"<<<<\"}\n", 2000))
		n.tells("run refused group.all.motd manifest", "node refused")
	})
}

// TestAManifestWithThousandsOfProblems: its report must fit.
func TestAManifestWithThousandsOfProblems(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.stream.limitMessages(mostBytes)
		n.start()
		n.put("group.all.motd", "motd", "hello\n")
		n.take()
		var b strings.Builder
		b.WriteString("muster:\n  resources:\n    - file:\n")
		for i := range 2000 {
			fmt.Fprintf(&b, "        - /x/%d: {ownr: \"<<<<\", group: root, mode: \"<9>\"}\n", i)
		}
		n.bucket.put("group.all.motd", b.String())
		n.tells("run refused group.all.motd manifest", "node refused")
		states, _, _ := n.stream.stored()
		last := states[len(states)-1]
		data, err := json.Marshal(last)
		if err != nil || len(data) > 8<<10 {
			t.Errorf("the state has %d bytes (%v)", len(data), err)
		}
		late := last.Manifests["group.all.motd"].Late
		if !strings.Contains(late, "ownr") || !strings.Contains(late, " more; group.all.motd revision 1 stays in force") {
			t.Errorf("late is %q", late)
		}
		if logged := strings.Count(n.log.String(), "level=ERROR"); logged > 200 {
			t.Errorf("%d errors are logged", logged)
		}
	})
}

// TestAStateThatCannotBeStoredIsLoggedOnce, and again only after a success in between.
func TestAStateThatCannotBeStoredIsLoggedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		for want := 1; want < 3; want++ {
			n.stream.setAway(true)
			n.after(10 * time.Minute)
			if got := strings.Count(n.log.String(), `level=WARN msg="cannot store node state`); got != want {
				t.Errorf("it is logged %d times, want %d", got, want)
			}
			n.stream.setAway(false)
			n.after(10 * time.Minute)
		}
	})
}
