package fleetcmd

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestOneGroupDoesNotFillTheHistory: repeated removals by one group's operator displace events of others only
// if the command asks for the last changes. The output reports that there are more.
func TestOneGroupDoesNotFillTheHistory(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	if _, err := kvstore.NewControl(store.Store).By("anna").Put(t.Context(), "node.db01.labels", []byte(`{"protocol":"io.muster.v1.labels","labels":{"rack":"a3"}}`)); err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		if _, err := store.Publish(t.Context(), kvstore.NewDeletion(kvstore.KVSubject(store.Names().Manifests(), fmt.Sprint("group.web.k", i)))); err != nil {
			t.Fatal(err)
		}
	}
	var out, remarks bytes.Buffer
	c := historyCommand{Env: &cli.Env{Print: print.Printer{Out: &out, Err: &remarks}}, limit: 100}
	if err := c.ofFleet(t.Context(), &Store{KV: store.Store}); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 101 || !strings.Contains(lines[1], "node.db01.labels") || !strings.Contains(lines[100], "group.web.k2999") {
		t.Errorf("%d lines, from %s to %s", len(lines), lines[1], lines[len(lines)-1])
	}
	if !strings.Contains(remarks.String(), "more changes exist; --limit 0 shows all") {
		t.Error(remarks.String())
	}
}
