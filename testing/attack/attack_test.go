package attack

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/jsm.go/api"

	"github.com/musterfleet/muster/testing/kvtest"
)

// whole reports whether all is tried that takes long.
func whole() bool { return os.Getenv("MUSTER_ATTACK") == "whole" }

// How an attack is seen to work.
type control int

const (
	// base: it wins against one account with the permissions that nodes once had.
	base control = iota
	// limitless: the control attacks as a user of that account without restrictions.
	limitless
	// loose: it wins as a node where the streams are configured as muster never does.
	loose
	// believing: it wins as the node where readers believe the headers of every message.
	believing
)

// attack is one row of the table.
type attack struct {
	// name is stable: documentation refers to it.
	name string
	// does is the action of the attacker, without its consequences.
	does, never string
	control     control
	// sign is part of a breach that the control must show.
	sign string
	// viewed rows are also judged by the views of operators.
	viewed bool
	// known is why the attack wins today, by the user.
	known map[string]string
	do    func(*attacker)
}

// attacks returns the table.
func attacks() []attack {
	return slices.Concat(couriers(), direct(), headers(), forged(), protocol(), beside())
}

// run attacks once, and returns the breaches.
func (f *fleet) run(t *testing.T, user, limits string, row attack) (breaches []string, landed map[string]bool) {
	t.Helper()
	var before string
	if row.viewed {
		before = f.view(t, row)
	}
	for _, e := range f.ears {
		e.fresh(t)
	}
	a := f.attacker(t, user, limits)
	defer a.nc.Close()
	row.do(a)
	a.flush()
	breaches = f.look(t, a)
	if row.viewed {
		if after := f.view(t, row); after != before {
			breaches = append(breaches, fmt.Sprintf("operators saw %s, and before %s", after, before))
		}
	}

	return breaches, a.landed
}

// look returns what happened since the last time.
func (f *fleet) look(t testing.TB, a *attacker) []string {
	t.Helper()
	breaches := a.breaches()
	if f.agent != nil {
		breaches = append(breaches, f.agent.breaches()...)
	}
	for _, e := range f.ears {
		breaches = append(breaches, e.breaches(t, f.breach(e.account, a.limits))...)
	}
	now := take(t, f.admin.Conn, f.last)
	breaches = append(breaches, now.changes(f.last, f.allowed(a.limits))...)
	f.last = now

	return breaches
}

func TestNode(t *testing.T)      { t.Parallel(); hold(t, attacking) }
func TestViewer(t *testing.T)    { t.Parallel(); hold(t, viewing) }
func TestOperator(t *testing.T)  { t.Parallel(); hold(t, operating) }
func TestRequester(t *testing.T) { t.Parallel(); hold(t, requesting) }

// hold has a user try everything on every layout.
func hold(t *testing.T, user string) {
	t.Helper()
	layouts := map[string]func(*testing.T) *fleet{"configuration": byConfig, "jwt": byJWT, "cluster": cluster, "second fleet": besideConfig, "second fleet by jwt": besideJWT}
	if !whole() {
		delete(layouts, "second fleet by jwt")
	}
	if user != attacking && !whole() {
		delete(layouts, "jwt")
		delete(layouts, "cluster")
	}
	for name, start := range layouts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t)
			for _, row := range attacks() {
				if name != "configuration" && name != "jwt" && !whole() && !slices.Contains(clustered(), row.name) {
					continue
				}
				t.Run(row.name, func(t *testing.T) {
					breaches, _ := f.run(t, user, user, row)
					switch known := row.known[user]; {
					case known != "" && len(breaches) == 0:
						t.Errorf("%s, and it is not true any more that %s", row.does, known)
					case known == "" && len(breaches) > 0:
						t.Errorf("%s, and it is not true that never %s:\n%s", row.does, row.never, some(breaches))
					}
				})
			}
		})
	}
}

// clustered are the attacks of the short form on three servers: those that depend on
// which server passes a message on.
func clustered() []string {
	return []string{"courier-to-manifests-of-a-node", "courier-to-state", "courier-to-stream-delete", "courier-to-listeners", "direct-subscribe", "header-trace", "inboxes", "answers"}
}

// some returns the first breaches, one a line.
func some(breaches []string) string {
	const enough = 10
	if more := len(breaches) - enough; more > 0 {
		breaches = append(slices.Clone(breaches[:enough]), fmt.Sprintf("and %d more", more))
	}

	return strings.Join(breaches, "\n")
}

// Every attack wins where nothing stands against it.
func TestControls(t *testing.T) {
	t.Parallel()
	landed, tried := map[string]bool{}, 0
	var f *fleet
	for _, attack := range attacks() {
		if f == nil || f.spoiled() {
			f = oneAccount(t, "")
		}
		t.Run(attack.name, func(t *testing.T) {
			tried++
			for way := range f.wins(t, attack) {
				landed[way] = true
			}
		})
	}
	for _, way := range []string{"direct get", "not found", "acknowledgement", "list of streams", "pull reply", "push consumer"} {
		if !landed[way] && tried == len(attacks()) {
			t.Errorf("no %s was ever delivered where the attacker named it", way)
		}
	}
}

// Fleets that share an account reach each other by the names that they do not share.
func TestControlOfASecondFleet(t *testing.T) {
	t.Parallel()
	f := oneAccount(t, secondFleet)
	for _, attack := range attacks() {
		if slices.Contains([]string{"courier-to-manifests-of-a-node", "courier-to-state", "courier-to-stream-delete"}, attack.name) {
			t.Run(attack.name, func(t *testing.T) { f.wins(t, attack) })
		}
	}
}

// wins attacks where the attacker must win, and returns the ways on which answers arrived.
func (f *fleet) wins(t *testing.T, row attack) map[string]bool {
	t.Helper()
	user := attacking
	switch row.control {
	case limitless:
		user = open
	case loose:
		f.loosen(t)
	case base, believing:
	}
	breaches, landed := f.run(t, user, attacking, row)
	// What the server was asked for by others' answers it does later.
	a := &attacker{t: t, fleet: f, user: user, limits: attacking}
	shown := func(b string) bool { return strings.Contains(b, row.sign) }
	kvtest.Eventually(t, row.name+" wins", func() (bool, string) {
		if !slices.ContainsFunc(breaches, shown) {
			breaches = append(breaches, f.look(t, a)...)
		}
		return slices.ContainsFunc(breaches, shown), fmt.Sprintf("no %q in %d breaches: %s", row.sign, len(breaches), some(breaches))
	})
	t.Logf("%d breaches, such as %s", len(breaches), breaches[slices.IndexFunc(breaches, shown)])

	return landed
}

// loosen configures the streams so that they obey the headers of a node.
func (f *fleet) loosen(t *testing.T) {
	t.Helper()
	for _, stream := range []string{"KV_MUSTER_NODES", "MUSTER_REPORTS"} {
		kvtest.Update(t, f.manager(t), stream, func(c *api.StreamConfig) {
			c.RollupAllowed, c.AllowMsgTTL, c.AllowAtomicPublish = true, true, true
			// A key-value bucket cannot use this setting, because it discards new messages.
			c.AllowMsgSchedules = c.Discard == api.DiscardOld
		})
	}
	f.last = take(t, f.admin.Conn, f.last)
}
