package fleetcmd

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestWhereReportsBegin checks the remark about reports that the stream no longer has.
func TestWhereReportsBegin(t *testing.T) {
	t.Parallel()
	oldest := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		bounds model.ReportBounds
		from   time.Time
		says   bool
	}{
		"nothing is gone":            {model.ReportBounds{Oldest: oldest}, time.Time{}, false},
		"older ones are gone":        {model.ReportBounds{Oldest: oldest, Dropped: true}, time.Time{}, true},
		"and before what is asked":   {model.ReportBounds{Oldest: oldest, Dropped: true}, oldest.Add(-time.Hour), true},
		"but nothing that was asked": {model.ReportBounds{Oldest: oldest, Dropped: true}, oldest, false},
		"all are gone":               {model.ReportBounds{Dropped: true}, time.Time{}, false},
	} {
		lines := begins(c.bounds, c.from)
		if (len(lines) == 1) != c.says || c.says && !strings.Contains(lines[0], "begins at 2026-01-31") {
			t.Errorf("%s: %q", name, lines)
		}
	}
}

// TestChangeDetails checks that the details do not repeat the columns EVENT and BY.
func TestChangeDetails(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct {
		kind view.ChangeKind
		want string
	}{
		"resumed":                          {view.ChangeResumed, ""},
		"paused by ann@desk":               {view.ChangePaused, ""},
		"paused by ann@desk: disk: a":      {view.ChangePaused, "disk: a"},
		"paused until noon by ann@desk":    {view.ChangePaused, "until noon"},
		"paused until 1:00 by ann@desk: d": {view.ChangePaused, "until 1:00: d"},
		"paused by carl: d":                {view.ChangePaused, "by carl: d"},
		"paused":                           {view.ChangePaused, ""},
		"labels rack=a3":                   {view.ChangeWritten, "labels rack=a3"},
		"not used: it is forged":           {view.ChangeRefused, "not used: it is forged"},
	} {
		if got := changeDetails(view.ControlChange{Kind: c.kind, By: "ann@desk", Text: text}); got != c.want {
			t.Errorf("%s: %q, want %q", text, got, c.want)
		}
	}
}

// TestMoreThanAreRead checks that the remark about a larger limit appears only if a larger limit shows more.
func TestMoreThanAreRead(t *testing.T) {
	t.Parallel()
	for _, isLimited := range []bool{true, false} {
		var out, remarks bytes.Buffer
		command := historyCommand{Env: &cli.Env{Print: print.Printer{Out: &out, Err: &remarks}}}
		doc := ofFleetDocument{Changes: []view.ControlChange{{Key: "group.web.motd"}}, isLimited: isLimited}
		if !isLimited {
			doc.Incomplete = []string{onlyLast("assignments", maxChanges)}
		}
		if err := command.showChanges(doc); err != nil {
			t.Fatal(err)
		}
		if says := strings.Contains(remarks.String(), "--limit 0 shows all"); says != isLimited || says == strings.Contains(remarks.String(), "only the last 50000 changes") {
			t.Errorf("limited %t: %s", isLimited, &remarks)
		}
	}
}

// TestIsBy tests that a user matches with and without a host, and that no other name matches.
func TestIsBy(t *testing.T) {
	t.Parallel()
	for by, want := range map[string]bool{"anna": true, "anna@desk": true, "anna (dashboard)": true, "anna (oidc 42)": true, "annabel@desk": false, "bob@anna": false, "": false} {
		if got := view.IsBy(by, "anna"); got != want {
			t.Errorf("%q: %t", by, got)
		}
	}
}

// TestOneGroupDoesNotFillTheHistory: repeated removals by one group's operator displace events of others only
// if the command asks for the last changes. The output reports that there are more.
func TestOneGroupDoesNotFillTheHistory(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	if _, err := kvstore.NewControl(store.Store).By("anna").Put(t.Context(), "node.db01.labels", []byte(`{"protocol":"io.muster.v1.labels","labels":{"rack":"a3"}}`)); err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		if _, err := store.Publish(t.Context(), kvstore.NewDeletion(kvstore.KVSubject(store.Names.Manifests, fmt.Sprint("group.web.k", i)))); err != nil {
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

// TestHistoryReadsUpToTheLimit checks that --limit reads few revisions, and that the document reports unread ones.
func TestHistoryReadsUpToTheLimit(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	for i := range 1000 {
		if _, err := store.Publish(t.Context(), kvstore.NewDeletion(kvstore.KVSubject(store.Names.Manifests, fmt.Sprint("group.web.k", i)))); err != nil {
			t.Fatal(err)
		}
	}
	before := store.Conn.Stats().InMsgs
	var out, remarks bytes.Buffer
	env := cli.NewEnv(nil, strings.NewReader(""), &out, &remarks, cli.NewInterrupt())
	app := fisk.New("muster", "")
	env.AddGlobals(app)
	c := historyCommand{Env: env, Format: print.Format{JSON: true}}
	cmd := app.Command("history", "")
	cli.Int(cmd.Flag("limit", ""), &c.limit)
	if _, err := app.Parse([]string{"history", "--limit", "20"}); err != nil {
		t.Fatal(err)
	}
	if err := c.ofFleet(t.Context(), &Store{KV: store.Store}); err != nil {
		t.Fatal(err)
	}
	if read := store.Conn.Stats().InMsgs - before; read > 300 {
		t.Errorf("read %d messages", read)
	}
	if strings.Count(out.String(), `"key"`) != 20 || !strings.Contains(out.String(), "group.web.k999") || !strings.Contains(out.String(), `"more": true`) {
		t.Error(out.String())
	}
}
