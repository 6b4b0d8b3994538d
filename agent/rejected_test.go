package agent_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/signtest"
)

// stored returns how many bytes a node keeps of its assignments.
func (n *node) stored() (bytes int64) {
	n.t.Helper()
	err := filepath.WalkDir(filepath.Join(n.config.StateDir, "assignments"), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		bytes += info.Size()
		return err
	})
	if err != nil {
		n.t.Fatal(err)
	}

	return bytes
}

// A permanently invalid value leaves its digest on a node, not its bytes, however large it is. It is reported
// once, also after a restart, and the last good version stays active.
func TestRejectedValuesAreNotKept(t *testing.T) {
	for name, trusts := range map[string]bool{"no manifest": false, "unsigned": true} {
		t.Run(name, func(t *testing.T) {
			alice := signtest.Signer(t)
			bubble(t, func(t *testing.T, n *node) {
				value := strings.Repeat("x", 100_000)
				if trusts {
					n.trusts(1, alice)
					value = n.manifest("motd", "evil") + "\n# " + value
				}
				n.start()
				n.bucket.put(motd, n.signedFile(motd, "motd", "good", nil, alice))
				n.settle()
				n.has("motd", "good")
				n.take()
				for i := range 20 {
					n.bucket.put(fmt.Sprint("group.web.q", i), value)
				}
				last := n.bucket.put(motd, value)
				n.settle()
				if got := n.stored(); got > 50_000 {
					t.Errorf("%d bytes are kept", got)
				}
				if state := n.agent.State().Manifests[motd]; state.Seen != last || !strings.HasPrefix(state.Late, "refused: ") {
					t.Errorf("the state is %+v", state)
				}
				if len(n.take()) == 0 {
					t.Error("nothing is reported")
				}
				if err := os.Remove(n.path("motd")); err != nil {
					t.Fatal(err)
				}
				n.stop()
				n.start()
				n.has("motd", "good")
				if state := n.agent.State().Manifests[motd]; state.Seen != last || !strings.HasPrefix(state.Late, "refused: ") {
					t.Errorf("after a restart the state is %+v", state)
				}
				for _, told := range n.told() {
					if strings.Contains(told, "refused") {
						t.Errorf("reported again: %s", told)
					}
				}
			})
		})
	}
}

// Values signed by a newly trusted key are accepted without another push.
func TestWhatWasRejectedIsJudgedAgain(t *testing.T) {
	alice, bob := signtest.Signer(t), signtest.Signer(t)
	bubble(t, func(t *testing.T, n *node) {
		n.trusts(1, alice)
		n.start()
		n.bucket.put(motd, n.signedFile(motd, "motd", "by bob", nil, bob))
		n.refuses(motd, "is not a trusted key")
		n.lacks("motd")
		n.trusts(1, alice, bob)
		if _, _, err := n.agent.Reload(t.Context(), n.config); err != nil {
			t.Fatal(err)
		}
		n.settle()
		n.has("motd", "by bob")
	})
}

// A key missing from the bucket stays assigned because of its active version. A key without one, as a lying
// server may invent, is dropped.
func TestALostKeyOfWhichNothingIsInForceIsForgotten(t *testing.T) {
	alice := signtest.Signer(t)
	bubble(t, func(t *testing.T, n *node) {
		n.trusts(1, alice)
		b := n.injected()
		const invented = "group.web.invented"
		n.start()
		b.put(motd, n.signedFile(motd, "motd", "good", nil, alice))
		b.put(invented, n.manifest("invented", "evil"))
		n.settle()
		if _, seen := n.agent.State().Manifests[invented]; !seen {
			t.Fatal("it was not seen")
		}
		b.change(func() { b.sync.Kept = []string{invented, motd} })
		n.settle()
		for _, when := range []string{"once it is lost", "after a restart"} {
			manifests := n.agent.State().Manifests
			if _, seen := manifests[invented]; seen || manifests[motd].Revision == 0 {
				t.Errorf("%s: %+v", when, manifests)
			}
			if _, err := os.Stat(filepath.Join(n.config.StateDir, "assignments", invented+".json")); !os.IsNotExist(err) {
				t.Errorf("%s: its record: %v", when, err)
			}
			n.stop()
			n.start()
		}
	})
}

// A user with write access to a key of the node puts many rejected revisions: they cost a few log lines and
// reports, the next report counts the omitted ones, and the state has the last of them.
func TestManyRejectionsAreAFewLines(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.take()
		var last uint64
		garbage := func(from, to int) (reports int) {
			for i := from; i < to; i++ {
				last = n.bucket.put(motd, fmt.Sprint("garbage ", i))
				n.settle()
			}
			return len(n.take())
		}
		if reports := garbage(0, 100); reports != 20 {
			t.Errorf("%d reports, want the runs and the reports of the node of 10 revisions", reports)
		}
		if text := n.log.String(); strings.Count(text, "assignment rejected") != 10 || strings.Count(text, "level=ERROR") != 20 {
			t.Errorf("logged\n%s", text)
		}
		if state := n.agent.State().Manifests[motd]; state.Seen != last || !strings.HasPrefix(state.Late, "refused: ") {
			t.Errorf("the state is %+v", state)
		}
		n.after(11 * time.Minute)
		n.take()
		n.bucket.put(motd, "garbage again")
		n.settle()
		if reports := n.take(); len(reports) != 2 || !strings.Contains(string(reports[1].Data), "90 rejections before it were not reported") {
			t.Errorf("reported %+v", reports)
		}
		if !strings.Contains(n.log.String(), "left_out=90") {
			t.Error("how many were left out is not logged")
		}
	})
}

// A bucket that loses ever more keys is a few short lines and a few reports.
func TestABucketThatLosesKeysIsAFewLines(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		b := n.injected()
		n.start()
		n.put(motd, "motd", "hello")
		n.take()
		var keys []string
		for i := range 100 {
			keys = append(keys, fmt.Sprintf("group.web.a%03d", i))
			b.change(func() { b.sync.Kept = slices.Clone(keys) })
			n.settle()
		}
		if reports := n.take(); len(reports) != 10 {
			t.Errorf("%d reports", len(reports))
		}
		if text := n.log.String(); strings.Count(text, "bucket not trusted") != 10 || strings.Contains(text, "a005, ") {
			t.Errorf("logged\n%s", text)
		}
		if message := n.agent.State().Message; !strings.Contains(message, "group.web.a004 and 95 more") {
			t.Errorf("the message is %q", message)
		}
	})
}

// However much a server assigns, a node reads a bounded part of it, its own keys first, and says
// why the rest is not in force.
func TestAssignmentsAreBoundedTogether(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		b := n.injected()
		user, group := hosttest.Owner(t)
		b.change(func() {
			for i := range 100 {
				key := fmt.Sprintf("group.web.q%02d", i)
				// JSON, because YAML of this size takes most of a second with the race detector.
				text := fmt.Sprintf(`{"muster": {"resources": [{"file": [{%q: {"content": "x", "owner": %q, "group": %q, "mode": "0644"}}]}]}}`, n.path(fmt.Sprint("q", i)), user, group)
				b.entries[key] = model.Entry{Key: key, Revision: uint64(i + 1), Value: []byte(text + strings.Repeat(" ", 900_000))}
			}
			key := "node.web01_example_net.own"
			b.entries[key] = model.Entry{Key: key, Revision: 200, Value: []byte(n.manifest("own", "mine"))}
		})
		n.start()
		n.settle()
		n.has("own", "mine")
		late := 0
		for key, state := range n.agent.State().Manifests {
			if strings.Contains(state.Late, "are larger than 64 MiB together") {
				late++
			} else if state.Revision == 0 {
				t.Errorf("%s: %+v", key, state)
			}
		}
		if late < 20 || late > 40 {
			t.Errorf("%d are not read", late)
		}
		if bytes := n.stored(); bytes > 100<<20 {
			t.Errorf("%d bytes are stored", bytes)
		}
		if text := n.log.String(); strings.Count(text, "level=WARN msg=\"assignment not ready") > 10 {
			t.Error("each of them is logged")
		}
	})
}

// A signature that is expired, or signed in the future, is reported once, though its reason
// has what time it is.
func TestWhatIsSignedForAnotherTimeIsReportedOnce(t *testing.T) {
	for name, shift := range map[string]time.Duration{"expired": -time.Hour, "future": time.Hour} {
		t.Run(name, func(t *testing.T) {
			alice := signtest.Signer(t)
			bubble(t, func(t *testing.T, n *node) {
				n.trusts(1, alice)
				n.start()
				n.bucket.put(motd, n.signedFile(motd, "motd", "late", func(s *signed.Statement) {
					s.Issued = time.Now().Add(shift)
					s.Expires = s.Issued.Add(time.Minute)
				}, alice))
				n.settle()
				if len(n.take()) == 0 {
					t.Error("it is not reported")
				}
				for i := range 5 {
					n.after(10 * time.Second)
					n.bucket.put("group.web.other", n.manifest("other", fmt.Sprint(i)))
					n.settle()
				}
				if shift < 0 { // a temporary problem is reported once by each agent
					n.stop()
					n.after(time.Second)
					n.start()
				}
				for _, r := range n.take() {
					if strings.Contains(string(r.Data), "group.web.motd") && r.Kind == model.KindRun {
						t.Errorf("again: %s", r.Data)
					}
				}
			})
		})
	}
}
