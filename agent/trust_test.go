package agent_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/testing/signtest"
)

// trusts makes a node demand signatures of keys.
func (n *node) trusts(threshold int, keys ...*signed.Signer) {
	n.config.Trust = config.Trust{Threshold: threshold, Keys: []config.TrustedKey{}}
	for _, k := range keys {
		n.config.Trust.Keys = append(n.config.Trust.Keys, config.TrustedKey{Key: string(k.Key())})
	}
}

// signedFile is a signed manifest of one file.
func (n *node) signedFile(key, name, content string, change func(*signed.Statement), by ...*signed.Signer) string {
	s := signed.Statement{Target: key, Content: n.manifest(name, content)}
	if change != nil {
		change(&s)
	}

	return string(signtest.Sign(n.t, s, by...))
}

// refuses fails the test unless the last value was rejected with a reason in a report and in the state,
// without changes.
func (n *node) refuses(key, reason string) {
	n.t.Helper()
	found := false
	for _, r := range n.take() {
		if r.Kind == model.KindTransaction {
			n.t.Errorf("it changed %s", r.Data)
		}
		var s model.NodeState
		if r.Kind == model.KindNode && r.Outcome == "refused" {
			n.decode(r, &s)
			found = found || strings.Contains(s.Message, reason)
		}
	}
	if !found {
		n.t.Errorf("no report says %q", reason)
	}
	if late := n.agent.State().Manifests[key].Late; !strings.HasPrefix(late, "refused: ") || !strings.Contains(late, reason) {
		n.t.Errorf("the state says %q, not %q", late, reason)
	}
}

const motd = "group.web.motd"

// TestTrustRefuses has what a stolen operator password or a rogue administrator of
// NATS can put under a key of a node that demands signatures: the last good version
// stays in force, also after a restart.
func TestTrustRefuses(t *testing.T) {
	t.Parallel()
	alice, eve := signtest.Signer(t), signtest.Signer(t)
	for name, c := range map[string]struct {
		value  func(n *node, good string) string
		reason string
	}{
		"unsigned":                    {func(n *node, _ string) string { return n.manifest("motd", "evil") }, "not signed"},
		"an unsigned document":        {func(n *node, _ string) string { return n.assignment("name: motd", n.manifest("motd", "evil")) }, "not signed"},
		"wrong key":                   {func(n *node, _ string) string { return n.signedFile(motd, "motd", "evil", nil, eve) }, "is not a trusted key"},
		"replayed from another key":   {func(n *node, _ string) string { return n.signedFile("group.web.other", "motd", "evil", nil, alice) }, "signed for something else"},
		"replayed from another node":  {func(n *node, _ string) string { return n.signedFile("node.web02.motd", "motd", "evil", nil, alice) }, "signed for something else"},
		"replayed from another group": {func(n *node, _ string) string { return n.signedFile("group.db.motd", "motd", "evil", nil, alice) }, "signed for something else"},
		"replayed from another fleet": {func(n *node, _ string) string {
			return n.signedFile(motd, "motd", "evil", func(s *signed.Statement) { s.Fleet = "test" }, alice)
		}, "signed for something else"},
		"older": {func(n *node, _ string) string {
			return n.signedFile(motd, "motd", "evil", func(s *signed.Statement) { s.Issued = time.Now().Add(-time.Minute) }, alice)
		}, "older than an accepted signature"},
		"expired": {func(n *node, _ string) string {
			return n.signedFile(motd, "motd", "evil", func(s *signed.Statement) { s.Issued, s.Expires = time.Now().Add(-time.Hour), time.Now() }, alice)
		}, "the signature expired"},
		"truncated": {func(n *node, good string) string { return good[:len(good)-20] }, "broken signed envelope"},
		"flipped":   {func(n *node, good string) string { return strings.Replace(good, `"payload":"e`, `"payload":"f`, 1) }, "broken signed envelope"},
		"huge":      {func(n *node, good string) string { return good[:len(good)-1] + strings.Repeat(" ", 200_000) + "}x" }, "broken signed envelope"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, n *node) {
				n.trusts(1, alice)
				n.start()
				n.after(time.Minute)
				good := n.signedFile(motd, "motd", "good", nil, alice)
				n.bucket.put(motd, good)
				n.settle()
				n.has("motd", "good")
				n.take()
				n.after(time.Second)
				n.bucket.put(motd, c.value(n, good))
				n.refuses(motd, c.reason)
				n.has("motd", "good")
				n.stop()
				n.take()
				if err := os.Remove(n.path("motd")); err != nil {
					t.Fatal(err)
				}
				n.start()
				n.has("motd", "good")
				if got := n.told(); strings.Contains(strings.Join(got, " "), "refused") {
					t.Errorf("it is reported again: %v", got)
				}
				n.bucket.put(motd, n.signedFile(motd, "motd", "better", nil, alice))
				n.settle()
				n.has("motd", "better")
			})
		})
	}
}

// TestTrustOlderAfterARestart: a replaced value does not return: not after a restart, not with another key's
// signature, not after the removal.
func TestTrustOlderAfterARestart(t *testing.T) {
	alice, bob := signtest.Signer(t), signtest.Signer(t)
	bubble(t, func(t *testing.T, n *node) {
		n.trusts(1, alice, bob)
		n.start()
		first := n.signedFile(motd, "motd", "first", nil, alice)
		n.after(time.Second)
		second := n.signedFile(motd, "motd", "second", nil, bob)
		n.bucket.put(motd, first)
		n.settle()
		n.bucket.put(motd, second)
		n.settle()
		n.has("motd", "second")
		n.take()
		n.bucket.put(motd, first)
		n.refuses(motd, "older than an accepted signature")
		n.stop()
		n.bucket.put(motd, first+" ")
		n.start()
		n.refuses(motd, "older than an accepted signature")
		n.bucket.put(motd, second) // the same again is none
		n.settle()
		n.has("motd", "second")
		if late := n.agent.State().Manifests[motd].Late; late != "" {
			t.Errorf("the state says %q", late)
		}
		n.after(time.Second)
		removal := n.removeSigned(motd, nil, alice)
		n.take()
		n.after(time.Second)
		n.bucket.put(motd, n.signedFile(motd, "motd", "third", nil, bob))
		n.settle()
		n.take()
		if _, err := n.nats.Delete(t.Context(), motd, removal); err != nil {
			t.Fatal(err)
		}
		n.refuses(motd, "older than an accepted signature")
		n.has("motd", "third")
		n.after(time.Second)
		n.removeSigned(motd, nil, bob)
		n.take()
		n.stop()
		n.bucket.put(motd, second)
		n.start()
		n.take()
		if state := n.agent.State().Manifests[motd]; state.Revision != 0 || !strings.Contains(state.Late, "older than an accepted signature") {
			t.Errorf("after the removal it came back: %+v", state)
		}
	})
}

// TestTrustWithoutMemory: a node with an empty state directory accepts a replayed value. The value's expiry
// limits this.
func TestTrustWithoutMemory(t *testing.T) {
	alice := signtest.Signer(t)
	bubble(t, func(t *testing.T, n *node) {
		n.trusts(1, alice)
		n.start()
		first := n.signedFile(motd, "motd", "first", nil, alice)
		n.after(time.Second)
		n.bucket.put(motd, n.signedFile(motd, "motd", "second", nil, alice))
		n.settle()
		n.has("motd", "second")
		n.bucket.put(motd, first)
		n.take()
		forget := func() {
			n.stop()
			n.state = t.TempDir()
			n.config.StateDir = n.state
			if err := os.Remove(n.path("motd")); err != nil {
				t.Fatal(err)
			}
			n.take()
			n.start()
		}
		forget()
		n.settle()
		n.has("motd", "first")
		n.after(time.Hour)
		forget()
		n.refuses(motd, "the signature expired")
		n.lacks("motd")
	})
}

// removeSigned removes a key with a proof.
func (n *node) removeSigned(key string, change func(*signed.Statement), by ...*signed.Signer) (proof []byte) {
	n.t.Helper()
	s := signed.Statement{Action: signed.Remove, Target: key}
	if change != nil {
		change(&s)
	}
	proof = signtest.Sign(n.t, s, by...)
	if _, err := n.nats.Delete(n.t.Context(), key, proof); err != nil {
		n.t.Fatal(err)
	}
	n.settle()

	return proof
}

// TestTrustOfRemovals: the active version stays until a signed removal.
func TestTrustOfRemovals(t *testing.T) {
	alice, eve := signtest.Signer(t), signtest.Signer(t)
	bubble(t, func(t *testing.T, n *node) {
		n.trusts(1, alice)
		n.start()
		good := n.signedFile(motd, "motd", "good", nil, alice)
		n.bucket.put(motd, good)
		n.settle()
		n.take()
		holds := func(reason string) {
			t.Helper()
			n.refuses(motd, reason)
			if err := os.Remove(n.path("motd")); err != nil {
				t.Fatal(err)
			}
			n.after(6 * time.Minute)
			n.has("motd", "good")
			n.take()
		}
		n.bucket.remove(motd)
		holds("not signed")
		n.stop()
		n.start()
		if state := n.agent.State().Manifests[motd]; state.Revision == 0 || !strings.Contains(state.Late, "not signed") {
			t.Errorf("after a restart: %+v", state)
		}
		n.take()
		n.removeSigned(motd, nil, eve)
		holds("is not a trusted key")
		n.removeSigned(motd, func(s *signed.Statement) { s.Fleet = "test" }, alice)
		holds("signed for something else")
		n.removeSigned(motd, func(s *signed.Statement) { s.Issued = time.Now().Add(-time.Hour * 24) }, alice)
		holds("expired")
		if _, err := n.nats.Delete(t.Context(), motd, []byte(good)); err != nil {
			t.Fatal(err)
		}
		n.settle()
		holds("signed for something else")
		n.removeSigned(motd, nil, alice)
		n.tells("node unassigned")
		if _, ok := n.agent.State().Manifests[motd]; ok {
			t.Error("it is still there")
		}
	})
}

// TestTrustOfThresholds: two people sign, one after the other.
func TestTrustOfThresholds(t *testing.T) {
	alice, bob := signtest.Signer(t), signtest.Signer(t)
	bubble(t, func(t *testing.T, n *node) {
		n.trusts(2, alice, bob)
		n.start()
		one := n.signedFile(motd, "motd", "two signed", nil, alice)
		n.bucket.put(motd, one)
		n.settle()
		n.lacks("motd")
		n.refuses(motd, "1 of 2 needed for group.web")
		n.after(time.Second)
		n.bucket.put(motd, twiceSigned(t, one))
		n.settle()
		n.lacks("motd")
		n.refuses(motd, "1 of 2 needed for group.web")
		e, err := signed.Open([]byte(one))
		if err != nil {
			t.Fatal(err)
		}
		both, err := e.Add(t.Context(), bob)
		if err != nil {
			t.Fatal(err)
		}
		n.bucket.put(motd, string(both))
		n.settle()
		n.has("motd", "two signed")
	})
}

// twiceSigned has the signature of a value twice, the second time by no name.
func twiceSigned(t *testing.T, value string) string {
	t.Helper()
	var e dsse.Envelope
	if err := json.Unmarshal([]byte(value), &e); err != nil {
		t.Fatal(err)
	}
	e.Signatures = append(e.Signatures, e.Signatures[0], dsse.Signature{Sig: e.Signatures[0].Sig})
	out, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}

	return string(out)
}

// TestTrustOfFamilies: the key of another group.
func TestTrustOfFamilies(t *testing.T) {
	alice, db := signtest.Signer(t), signtest.Signer(t)
	bubble(t, func(t *testing.T, n *node) {
		n.trusts(1, alice, db)
		n.config.Trust.Keys[1].Families, n.config.Trust.Keys[1].Name = []string{"group.db", "node.*"}, "dan"
		n.start()
		n.bucket.put(motd, n.signedFile(motd, "motd", "evil", nil, db))
		n.settle()
		n.refuses(motd, "dan is not trusted for group.web")
		own := "node." + n.config.Node + ".own"
		n.bucket.put(own, n.signedFile(own, "own", "fine", nil, db))
		n.settle()
		n.has("own", "fine")
		n.lacks("motd")
	})
}

// TestTrustByTheClock: a signature of the future waits for its time, and a clock that
// goes back revives nothing that had expired.
func TestTrustByTheClock(t *testing.T) {
	alice := signtest.Signer(t)
	bubble(t, func(t *testing.T, n *node) {
		n.trusts(1, alice)
		n.start()
		n.bucket.put(motd, n.signedFile(motd, "motd", "future", func(s *signed.Statement) { s.Issued = time.Now().Add(10 * time.Minute) }, alice))
		n.settle()
		n.lacks("motd")
		if late := n.agent.State().Manifests[motd].Late; !strings.Contains(late, "signed in the future") {
			t.Errorf("the state says %q", late)
		}
		n.after(11 * time.Minute)
		n.has("motd", "future")
	})
}

// TestTrustTurnedOn: the active version stays, is reported, and is replaced by the next signed one.
// Signatures of a withdrawn key count as missing.
func TestTrustTurnedOn(t *testing.T) {
	alice, bob := signtest.Signer(t), signtest.Signer(t)
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.put(motd, "motd", "plain")
		// Without trust, a signed value counts as its content.
		n.bucket.put("group.web.two", n.signedFile("group.web.two", "two", "by alice", nil, alice))
		n.settle()
		n.has("two", "by alice")
		n.take()
		reload := func(keys ...*signed.Signer) {
			t.Helper()
			n.trusts(1, keys...)
			if _, _, err := n.agent.Reload(t.Context(), n.config); err != nil {
				t.Fatal(err)
			}
			n.settle()
		}
		reload(alice)
		n.refuses(motd, "not signed")
		if late := n.agent.State().Manifests["group.web.two"].Late; late != "" {
			t.Errorf("the signed one: %q", late)
		}
		reload(bob)
		n.refuses("group.web.two", "is not a trusted key")
		for _, name := range []string{"motd", "two"} {
			if err := os.Remove(n.path(name)); err != nil {
				t.Fatal(err)
			}
		}
		n.after(6 * time.Minute)
		n.has("motd", "plain")
		n.has("two", "by alice")
		n.bucket.put(motd, n.signedFile(motd, "motd", "by bob", nil, bob))
		n.settle()
		n.has("motd", "by bob")
		if late := n.agent.State().Manifests[motd].Late; late != "" {
			t.Errorf("the state says %q", late)
		}
	})
}

// TestTrustOfRequests: live requests and queued ones.
func TestTrustOfRequests(t *testing.T) {
	alice, eve := signtest.Signer(t), signtest.Signer(t)
	bubble(t, func(t *testing.T, n *node) {
		n.trusts(1, alice)
		n.start()
		n.take()
		sign := func(by *signed.Signer, request []byte, change func(*signed.Statement)) []byte {
			s := signed.Statement{Action: signed.Ensure, Target: "group.web", Content: string(request)}
			if change != nil {
				change(&s)
			}
			return signtest.Sign(t, s, by)
		}
		for name, c := range map[string]struct {
			data   []byte
			reason string
		}{
			"unsigned":         {n.request("r1", "evil", "x", ""), "not signed"},
			"wrong key":        {sign(eve, n.request("r2", "evil", "x", ""), nil), "is not a trusted key"},
			"another node's":   {sign(alice, n.request("r3", "evil", "x", ""), func(s *signed.Statement) { s.Target = "node.web02" }), "signed for something else"},
			"another group's":  {sign(alice, n.request("r4", "evil", "x", ""), func(s *signed.Statement) { s.Target = "group.db" }), "signed for something else"},
			"another fleet's":  {sign(alice, n.request("r5", "evil", "x", ""), func(s *signed.Statement) { s.Fleet = "test" }), "signed for something else"},
			"an assignment":    {sign(alice, n.request("r6", "evil", "x", ""), func(s *signed.Statement) { s.Action, s.Target = signed.Assign, motd }), "signed"},
			"without an id":    {sign(alice, n.request("", "evil", "x", ""), nil), "needs an id"},
			"of the future":    {sign(alice, n.request("r7", "evil", "x", ""), func(s *signed.Statement) { s.Issued = time.Now().Add(time.Hour) }), "signed in the future"},
			"expired":          {sign(alice, n.request("r8", "evil", "x", ""), func(s *signed.Statement) { s.Issued = time.Now().Add(-2 * time.Hour) }), "the signature expired"},
			"valid for longer": {sign(alice, n.request("r9", "evil", "x", ""), func(s *signed.Statement) { s.Expires = time.Now().Add(25 * time.Hour) }), "at most 24h"},
		} {
			a := n.ask(c.data)
			n.settle()
			if got := a.last(); got.Phase != model.EnsureFailed || !strings.Contains(got.Error, c.reason) {
				t.Errorf("%s: %+v", name, got)
			}
			if err := n.agent.Requests().Command(t.Context(), nil, "queued "+name, c.data); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			n.settle()
			n.lacks("evil")
		}
		refused := 0
		for _, r := range n.take() {
			if r.Kind == model.KindNode && r.Outcome == "refused" {
				refused++
			}
		}
		if refused != 1 {
			t.Errorf("%d reports of the node within a minute", refused)
		}
		good := sign(alice, n.request("good", "asked", "once", ""), func(s *signed.Statement) { s.Expires = time.Now().Add(24 * time.Hour) })
		if a := n.ask(good); a.phases() != "acknowledged running done" && a.last().Phase != model.EnsureDone {
			n.settle()
			if a.last().Phase != model.EnsureDone {
				t.Errorf("the good one: %s, %+v", a.phases(), a.last())
			}
		}
		n.has("asked", "once")
		if err := os.Remove(n.path("asked")); err != nil {
			t.Fatal(err)
		}
		// Replayed while it is valid, by another id of the message, after a restart, and
		// when its time is over.
		for _, wait := range []time.Duration{0, 23 * time.Hour, 90 * time.Minute} {
			n.after(wait)
			n.stop()
			n.start()
			n.ask(good)
			if err := n.agent.Requests().Command(t.Context(), nil, "another", good); err != nil {
				t.Error(err)
			}
			n.settle()
			n.lacks("asked")
		}
	})
}

// TestTrustOfStatusRequests: a status request has no signature. It must not run the guards of a manifest, and must not
// show parts of a file in the errors of a template.
func TestTrustOfStatusRequests(t *testing.T) {
	alice := signtest.Signer(t)
	bubble(t, func(t *testing.T, n *node) {
		for name, content := range map[string]string{"child.yaml": n.child("motd", "hello", ""), "passwords": "root:hash", "motd": "hello"} {
			if err := os.WriteFile(n.path(name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		n.trusts(1, alice)
		n.start()
		status := func(typ, properties string) string {
			t.Helper()
			state, err := n.agent.Requests().Status(t.Context(), fmt.Appendf(nil, `{"protocol": %q, "type": %q, "properties": {%s}}`, model.ProtocolEnsureRequest, typ, properties))
			return fmt.Sprint(string(state), err)
		}
		for _, name := range []string{"child.yaml", "passwords", "missing"} {
			if got := status("apply", fmt.Sprintf(`"name": %q`, n.path(name))); !strings.Contains(got, "runs only what is signed") || strings.Contains(got, "hash") {
				t.Errorf("%s: %s", name, got)
			}
		}
		for _, source := range []string{"http://127.0.0.1:1/templates.tar.gz", n.path(".")} {
			got := status("scaffold", fmt.Sprintf(`"name": %q, "source": %q, "left_delimiter": "root:"`, n.path("site"), source))
			if !strings.Contains(got, "may have only the name, not `source`") || strings.Contains(got, "hash") {
				t.Error(got)
			}
		}
		if got := status("file", fmt.Sprintf(`"name": %q`, n.path("motd"))); !strings.Contains(got, `"ensure":"present"`) {
			t.Error(got)
		}
	})
}

// TestTrustTurnedOnAfterRequests: what a node answered before comes again from the
// queue at each restart, and is no failure.
func TestTrustTurnedOnAfterRequests(t *testing.T) {
	alice := signtest.Signer(t)
	bubble(t, func(t *testing.T, n *node) {
		queued := func(id string, data []byte) {
			t.Helper()
			if err := n.agent.Requests().Command(t.Context(), nil, id, data); err != nil {
				t.Error(err)
			}
			n.settle()
		}
		done, noID := n.request("r1", "asked", "once", ""), n.request("", "anonymous", "once", "")
		n.start()
		queued("r1", done)
		queued("r2", noID)
		n.has("asked", "once")
		n.has("anonymous", "once")
		n.stop()
		n.take()
		n.trusts(1, alice)
		n.start()
		n.take()
		for _, name := range []string{"asked", "anonymous"} {
			if err := os.Remove(n.path(name)); err != nil {
				t.Fatal(err)
			}
		}
		queued("r1", done)
		queued("r2", noID)
		n.lacks("asked")
		n.lacks("anonymous")
		if got := n.take(); len(got) != 0 {
			t.Errorf("reported: %s", got[0].Data)
		}
		// Another request with the same id is judged on its own, also if it is not queued.
		queued("r1", n.request("r1", "evil", "x", ""))
		n.lacks("evil")
		if a := n.ask(done); !strings.Contains(a.last().Error, "not signed") {
			t.Errorf("%+v", a.last())
		}
		refused := ""
		for _, r := range n.take() {
			if r.Kind == model.KindNode && r.Outcome == "refused" {
				var s model.NodeState
				n.decode(r, &s)
				refused = s.Message
			}
		}
		if !strings.HasPrefix(refused, "request: not signed: this node demands") {
			t.Errorf("the report of the node: %q", refused)
		}
	})
}

// TestTrustWithoutSigners: the families that no key may sign for are logged at the
// start and when the keys change.
func TestTrustWithoutSigners(t *testing.T) {
	alice, bob := signtest.Signer(t), signtest.Signer(t)
	bubble(t, func(t *testing.T, n *node) {
		const event, families = "no key of trust.keys may sign for these families", "families=node.web01_example_net,group.prod,group.all"
		logged := func(text string) int { return strings.Count(n.log.String(), text) }
		n.trusts(1, alice)
		n.start()
		n.settle()
		if logged(event) != 0 {
			t.Error("a key that may sign for everything is logged")
		}
		n.trusts(1, alice, bob)
		n.config.Trust.Keys[0].Families, n.config.Trust.Keys[1].Families = []string{"group.web"}, []string{"group.db"}
		if _, _, err := n.agent.Reload(t.Context(), n.config); err != nil {
			t.Fatal(err)
		}
		n.stop()
		n.start()
		n.settle()
		if logged(event) != 2 || logged(families) != 2 {
			t.Errorf("%d times, %d times with its families", logged(event), logged(families))
		}
	})
}

// TestTrustRecordDamaged: the agent does not start, because without the record an older version could return.
func TestTrustRecordDamaged(t *testing.T) {
	alice := signtest.Signer(t)
	bubble(t, func(t *testing.T, n *node) {
		n.trusts(1, alice)
		n.start()
		n.bucket.put(motd, n.signedFile(motd, "motd", "good", nil, alice))
		n.settle()
		n.stop()
		path := filepath.Join(n.state, "trust.json")
		text, err := os.ReadFile(path)
		if err != nil || !json.Valid(text) || !strings.Contains(string(text), motd) {
			t.Fatalf("the record is %s, %v", text, err)
		}
		if err := os.WriteFile(path, text[:len(text)-3], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := agent.New(t.Context(), n.options()); err == nil || !strings.Contains(err.Error(), "trust.json") || !strings.Contains(err.Error(), "remove the file") {
			t.Errorf("it starts: %v", err)
		}
		n.trusts(1)
		n.start()
		n.has("motd", "good")
	})
}
