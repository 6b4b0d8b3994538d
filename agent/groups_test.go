package agent_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/testing/signtest"
)

// groups is a control document.
func groups(names ...string) string {
	return `{"protocol": "io.muster.v1.groups", "groups": ["` + strings.Join(names, `", "`) + `"]}`
}

// isMember fails unless the node is in these groups.
func (n *node) isMember(want ...string) {
	n.t.Helper()
	if got := n.agent.State().Groups; !slices.Equal(got, want) {
		n.t.Errorf("the node is in %q, want %q", got, want)
	}
	if got := n.agent.Describe().Groups; !slices.Equal(got, want) {
		n.t.Errorf("on the node it is in %q, want %q", got, want)
	}
}

// TestGroupsOfOperators: the node runs their assignments beside its configured groups, also after a restart.
// A pause of such a group pauses the node.
func TestGroupsOfOperators(t *testing.T) {
	withControl(t, func(t *testing.T, n *node) {
		own := n.config.Groups
		n.put("group.fresh.more", "b", "two")
		n.lacks("b")
		key := n.own(model.ControlGroups)
		n.control(key, groups("fresh"))
		n.isMember(append([]string{"fresh"}, own...)...)
		n.has("b", "two")
		n.control("group.fresh.pause", pausing(0))
		n.isPaused("group.fresh.pause")
		n.stop()
		n.start()
		n.isMember(append([]string{"fresh"}, own...)...)
		n.isPaused("group.fresh.pause")
		n.control("group.fresh.pause", "")
		for _, invalid := range []string{"garbage", groups("all"), groups("a", "a"), groups("a.b"), groups(">"), groups("")} {
			n.control(key, invalid)
			n.isMember(append([]string{"fresh"}, own...)...)
		}
		n.control(key, groups(own...))
		n.isMember(slices.Sorted(slices.Values(own))...)
		if _, still := n.agent.State().Manifests["group.fresh.more"]; still {
			t.Error("it still has what is assigned to a group that it left")
		}
		n.control(key, groups("fresh"))
		n.control(key, "")
		n.isMember(own...)
	})
}

// TestOrderOfGroups checks which group wins where several assign a manifest of one name.
func TestOrderOfGroups(t *testing.T) {
	withControl(t, func(t *testing.T, n *node) {
		own, key := n.config.Groups, n.own(model.ControlGroups)
		ordered := func(groups, order string) string {
			return `{"protocol": "io.muster.v1.groups", "groups": [` + groups + `], "order": [` + order + `]}`
		}
		n.put("group."+own[0]+".app", "order", "configured")
		n.put("group.canary.app", "order", "canary")
		n.put("group.edge.app", "order", "edge")
		n.has("order", "configured")
		n.control(key, groups("edge", "canary"))
		n.isMember(append([]string{"canary", "edge"}, own...)...)
		n.has("order", "canary")
		n.control(key, ordered(`"canary", "edge"`, `"edge"`))
		n.isMember(append([]string{"edge", "canary"}, own...)...)
		n.has("order", "edge")
		n.control(key, ordered(`"canary", "edge"`, `"`+own[0]+`", "edge", "gone"`))
		n.has("order", "configured")
		n.stop()
		n.start()
		n.has("order", "configured")
		for _, invalid := range []string{ordered(`"canary"`, `"all"`), ordered(`"canary"`, `"a", "a"`), ordered(`"canary"`, `"a.b"`)} {
			n.control(key, invalid)
			n.has("order", "configured")
		}

		n.control(key, groups("edge", "canary"))
		n.has("order", "canary")
		next := n.config
		next.GroupsOrder = []string{own[0]}
		if _, _, err := n.agent.Reload(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		n.settle()
		n.has("order", "configured")
	})
}

// TestSignedGroups: a node that demands signatures comes into groups, and out of them, by its keys
// only.
func TestSignedGroups(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.controlled = true
		alice, eve := signtest.Signer(t), signtest.Signer(t)
		n.trusts(1, alice)
		n.start()
		own := n.config.Groups
		family, key := model.NodeFamily(n.config.Node), n.own(model.ControlGroups)
		sign := func(action signed.Action, target string, by *signed.Signer, names ...string) string {
			n.after(time.Second) // each later than the one before
			return string(signtest.Sign(t, signed.Statement{Action: action, Target: target, Content: groups(names...)}, by))
		}
		for reason, value := range map[string]string{
			"not signed":                groups("fresh"),
			"is not a trusted key":      sign(signed.Groups, family, eve, "fresh"),
			"signed for something else": sign(signed.Groups, "node.other", alice, "fresh"),
			"to pause, not to groups":   sign(signed.Pause, family, alice, "fresh"),
		} {
			n.control(key, value)
			n.isMember(own...)
			if text := n.agent.State().Message; !strings.Contains(text, reason) {
				t.Errorf("the message is %q, want %q", text, reason)
			}
		}
		first := sign(signed.Groups, family, alice, "fresh")
		n.control(key, first)
		joined := append([]string{"fresh"}, own...)
		n.isMember(joined...)
		n.control(key, "") // the end of it is not signed
		n.isMember(joined...)
		n.control(key, sign(signed.Groups, family, alice, own...))
		n.isMember(slices.Sorted(slices.Values(own))...)
		n.control(key, first) // replayed
		n.isMember(slices.Sorted(slices.Values(own))...)
		n.stop()
		n.start()
		n.isMember(slices.Sorted(slices.Values(own))...)
	})
}

// TestGroupsThatNobodySignsFor: the log of a node also lists groups of an operator.
func TestGroupsThatNobodySignsFor(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.controlled = true
		alice := signtest.Signer(t)
		n.trusts(1, alice)
		own := n.config.Groups
		families := []string{"node.*", model.GroupFamily(model.GroupAll)}
		for _, g := range own {
			families = append(families, model.GroupFamily(g))
		}
		n.config.Trust.Keys[0].Families = families
		n.start()
		family := model.NodeFamily(n.config.Node)
		n.after(time.Second)
		n.control(n.own(model.ControlGroups), string(signtest.Sign(t, signed.Statement{Action: signed.Groups, Target: family, Content: groups("fresh")}, alice)))
		n.isMember(append([]string{"fresh"}, own...)...)
		if text := n.log.String(); !strings.Contains(text, "accept nothing") || !strings.Contains(text, "families=group.fresh") {
			t.Errorf("the log is\n%s", text)
		}
	})
}

// TestGroupIsShownOnceItIsRead: the state shows an operator's group after NATS returned or denied its
// assignments. After a restart it shows the earlier groups at once.
func TestGroupIsShownOnceItIsRead(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.controlled = true
		bucket := n.injected()
		n.start()
		own := n.config.Groups
		shows := func(want ...string) {
			t.Helper()
			n.settle()
			if got := n.agent.State().Groups; !slices.Equal(got, append(slices.Clone(want), own...)) {
				t.Errorf("the state has %q, want %q beside %q", got, want, own)
			}
		}
		n.control(n.own(model.ControlGroups), groups("closed", "fresh"))
		shows()
		if got := n.agent.Describe().Groups; !slices.Equal(got, append([]string{"closed", "fresh"}, own...)) {
			t.Errorf("on the node it is in %q", got)
		}
		bucket.change(func() { bucket.sync.Known = []string{"group.fresh"} })
		shows("fresh")
		bucket.change(func() {
			bucket.sync.Failed, bucket.sync.Err = []string{"group.closed"}, errors.New("group.closed is not permitted")
		})
		shows("closed", "fresh")
		if text := n.agent.State().Message; !strings.Contains(text, "group.closed is not permitted") {
			t.Errorf("the message is %q", text)
		}
		if got := n.agent.State().UnreadGroups; !slices.Equal(got, []string{"closed"}) {
			t.Errorf("the unread groups are %q", got)
		}
		n.control(n.own(model.ControlGroups), groups("fresh", "later"))
		shows("fresh")
		n.stop()
		n.start()
		shows("fresh", "later")
	})
}
