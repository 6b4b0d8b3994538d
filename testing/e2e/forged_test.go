package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// TestAKeyWithForbiddenHeadersIsRepaired: a push replaces the value, also the same one, and so do the commands that write
// about nodes. The list marks it until then.
func TestAKeyWithForbiddenHeadersIsRepaired(t *testing.T) {
	t.Parallel()
	f := newSignFleet(t)
	manifest := []byte(manifestOf("assigned"))
	f.put(manifest)
	spoil := func(subject string, value []byte) {
		t.Helper()
		m := nats.NewMsg(subject)
		m.Data = value
		m.Header.Set(nats.JSStream, "OTHER")
		if _, err := f.nc.RequestMsg(m, deadline); err != nil {
			t.Fatal(err)
		}
	}
	spoil("$KV.MUSTER_MANIFESTS."+signKey, manifest)
	if list := f.good("fleet", "ls"); !strings.Contains(list, "unusable") || !strings.Contains(list, "push it again") {
		t.Errorf("not marked:\n%s", list)
	}
	file := filepath.Join(f.dir, "motd.yaml")
	if err := os.WriteFile(file, manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	f.good("fleet", "push", "--group", "web", file)
	if list := f.good("fleet", "ls"); strings.Contains(list, "unusable") {
		t.Errorf("not repaired:\n%s", list)
	}
	f.good("fleet", "show", signKey)
	for name, c := range map[string]struct {
		subject, value string
		repair         []string
	}{
		"pause":      {"$KV.MUSTER_CONTROL.group.web.pause", `{"reason":"x"}`, []string{"fleet", "pause", "--group", "web", "--until", "1h", "--yes", "--reason", "work"}},
		"its end":    {"$KV.MUSTER_CONTROL.group.web.pause", `{"reason":"x"}`, []string{"fleet", "resume", "--group", "web", "--yes"}},
		"the labels": {"$KV.MUSTER_CONTROL.node.web01.labels", `{}`, []string{"fleet", "label", "web01", "rack=a3", "--yes"}},
	} {
		spoil(c.subject, []byte(c.value))
		if code, text := f.run(c.repair...); code != 0 {
			t.Errorf("%s: %d\n%s", name, code, text)
		}
	}
}
