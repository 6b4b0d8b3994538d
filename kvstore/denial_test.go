package kvstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

func connection(inbox string) kvstore.DenialContext {
	names, err := kvstore.NewNames("")
	if err != nil {
		panic(err)
	}

	return kvstore.DenialContext{Inbox: inbox, Names: names, Mistaken: func(subject string) error {
		if strings.HasPrefix(subject, "wrong.") {
			return kvstore.Unusable{Err: errors.New("wrong prefix")}
		}

		return nil
	}}
}

func violation(text string) error { return fmt.Errorf("%w: %s", nats.ErrPermissionViolation, text) }

func TestCauses(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct{ inbox, want string }{
		`Permissions Violation for Subscription to "_INBOX.x.*"`:                        {"_INBOX", "set --inbox-prefix _INBOX_NAME for an operator"},
		`Permissions Violation for Subscription to "_INBOX_web01.x.*"`:                  {"_INBOX_web01", "lacks the permissions of web01"},
		`Permissions Violation for Subscription to "_INBOX_web02.x"`:                    {"_INBOX_web01", ""},
		`Permissions Violation for Subscription to "own.x"`:                             {"own", "set --inbox-prefix"},
		`Permissions Violation for Subscription to "$KV.MUSTER_MANIFESTS.group.db.x"`:   {"_INBOX", ""},
		`Permissions Violation for Publish to "$KV.MUSTER_MANIFESTS.group.db.x"`:        {"_INBOX", "operators of group.db do (muster fleet permissions NAME --operator --groups db)"},
		`permissions violation for publish to "$KV.MUSTER_MANIFESTS.node.web01.x"`:      {"_INBOX", "--operator --nodes web01)"},
		`Permissions Violation for Publish to "$KV.MUSTER_MANIFESTS.group.all.x"`:       {"_INBOX", "only administrators assign to all nodes"},
		`Permissions Violation for Publish to "$KV.MUSTER_NODES.web01.state"`:           {"_INBOX", "only administrators remove it"},
		`Permissions Violation for Publish to "$KV.MUSTER_CONTROL.node.web01.groups"`:   {"_INBOX", "only administrators put nodes into groups"},
		`Permissions Violation for Publish to "$KV.MUSTER_CONTROL.node.web01.pause"`:    {"_INBOX", "operators of node.web01 do (muster fleet permissions NAME --operator --nodes web01)"},
		`Permissions Violation for Publish to "$KV.MUSTER_MANIFESTS.node.web01.groups"`: {"_INBOX", "operators of node.web01 do"},
		`Permissions Violation for Publish to "$KV.MUSTER_MANIFESTS.x"`:                 {"_INBOX", ""},
		`Permissions Violation for Publish to "muster.command.node.a.i"`:                {"_INBOX", "operators of node.a"},
		`Permissions Violation for Publish to "a.STREAM.INFO.OBJ_MUSTER_BUNDLES"`:       {"_INBOX", "only administrators store bundles"},
		`Permissions Violation for Publish to "a.DIRECT.GET.OBJ_MUSTER_BUNDLES"`:        {"_INBOX", ""},
		`Permissions Violation for Publish to "wrong.STREAM.LIST"`:                      {"_INBOX", "wrong prefix"},
		`Permissions Violation for Publish to "a.DIRECT.GET.KV_MUSTER_MANIFESTS"`:       {"_INBOX", "a node may read only its own keys"},
		`Permissions Violation for Publish to "a.DIRECT.GET.KV_MUSTER_MANIFESTS.k"`:     {"_INBOX", ""},
		`something else`: {"_INBOX", ""},
	} {
		d := connection(c.inbox).Of(violation(text))
		if (d.Cause != nil) != (c.want != "") || !strings.Contains(d.Error(), c.want) || !errors.Is(d, model.ErrNotPermitted) || !errors.Is(d, nats.ErrPermissionViolation) {
			t.Errorf("%s: %v", text, d)
		}
		if err := fmt.Errorf("read: %w", d); kvstore.IsExplained(err) != (c.want != "") {
			t.Errorf("%s: explained is %v", text, kvstore.IsExplained(err))
		}
	}
}

// TestRemedyOfWhoAsks: an operator and an agent without permissions need other ones.
func TestRemedyOfWhoAsks(t *testing.T) {
	t.Parallel()
	denied := violation(`Permissions Violation for Subscription to "_INBOX_web01.x.*"`)
	c := connection("_INBOX_web01")
	if got := c.Of(denied).Error(); !strings.Contains(got, "include the output of `muster fleet permissions web01 --viewer` (or `--operator --groups …`) in") || strings.Contains(got, "agent.yaml") {
		t.Errorf("an operator: %s", got)
	}
	c.Node = kvstore.PermissionsCommand("web01", []string{"web", "db"})
	if got := c.Of(denied).Error(); !strings.Contains(got, "include the output of `muster fleet permissions web01 --groups web,db` in") || strings.Contains(got, "inbox-prefix") {
		t.Errorf("an agent: %s", got)
	}
}

// TestNodesHaveARemedy: a missing permission names one remedy once; other errors have none.
func TestNodesHaveARemedy(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`Permissions Violation for Publish to "x"`:               "not permitted to publish to x (give the node what `muster fleet permissions web01 --groups db` prints)",
		`Permissions Violation for Subscription to "_INBOX.x.*"`: connection("_INBOX").Of(violation(`Permissions Violation for Subscription to "_INBOX.x.*"`)).Error(),
	} {
		if got := kvstore.DenialWithRemedy(connection("_INBOX").Of(violation(text)), "web01", []string{"db"}); got.Error() != want || !errors.Is(got, model.ErrNotPermitted) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	family := kvstore.DenialOfFamily(connection("_INBOX").Of(violation(`Permissions Violation for Publish to "x"`)), "group.db", "web01", []string{"db"})
	if want := "group.db is not permitted: give the node what `muster fleet permissions web01 --groups db` prints (not permitted to publish to x)"; family.Error() != want || !errors.Is(family, model.ErrNotPermitted) {
		t.Errorf("%v, want %s", family, want)
	}
	other := errors.New("other")
	if got := kvstore.DenialOfFamily(other, "group.db", "web01", nil); got != other || kvstore.DenialOfFamily(nil, "group.db", "web01", nil) != nil {
		t.Errorf("%v", got)
	}
	if got := kvstore.DenialWithRemedy(other, "web01", nil); got != other || kvstore.DenialWithRemedy(nil, "web01", nil) != nil {
		t.Errorf("%v", got)
	}
}

// FuzzOf explains any text of a server.
func FuzzOf(f *testing.F) {
	for _, text := range []string{"", `Permissions Violation for Publish to "$KV.MUSTER_MANIFESTS.group.db.x"`, `Violation for Subscription to "_INBOX_web01."`, `violation for publish to ""`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if d := connection("_INBOX_web01").Of(violation(text)); d.Error() == "" || !errors.Is(d, model.ErrNotPermitted) {
			t.Errorf("%q: %v", text, d)
		}
	})
}
