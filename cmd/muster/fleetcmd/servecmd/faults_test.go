package servecmd

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/simulate"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/simulatecmd"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/reports"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/fleetsim"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

const motd = "muster:\n  resources:\n    - file:\n        - /etc/motd: {content: hello, owner: root, group: root, mode: '0644'}\n"

// play plays nodes of a scenario until the test ends, and returns how many reports they made.
func play(t *testing.T, srv *natstest.Server, store *kvtest.Store, count int, scenario string) *simulatecmd.Fleet {
	t.Helper()
	if _, err := store.Put(t.Context(), "group.sim.motd", []byte(motd)); err != nil {
		t.Fatal(err)
	}

	return fleetsim.Simulate(t, connect.Options{Servers: []string{srv.URL()}}, simulatecmd.Options{
		Plan: simulate.Plan{Nodes: count, Scenario: scenario, Seed: 5, RunTime: time.Millisecond},
	})
}

// TestKilled: one that is started again, and another beside it, know the same as the one that saw all
// of it happen, where nothing counts twice.
func TestKilled(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	first := serveFleet(t, kvtest.Bind(t, srv), access.Options{})
	first.complete()
	const count = 60
	play(t, srv, store, count, "hostile")
	second := serveFleet(t, kvtest.Bind(t, srv), access.Options{})
	for id, family := range map[string]string{"q1": "group.sim-web", "q2": "group.sim"} {
		request := fmt.Sprintf(`{"protocol":"io.choria.ccm.v1.resource.ensure.request","id":%q,"type":"exec","properties":{"name":"/bin/true","ensure":"present"}}`, id)
		ask(t, store, family, request)
	}
	for _, s := range []*served{first, second} {
		kvtest.Eventually(t, "all answers are known", func() (bool, string) {
			text := s.text("api/v1/requests")
			// All but a silent one, which is one of the web servers.
			return strings.Contains(text, fmt.Sprintf(`"answers":%d`, count*3/5-1)) && strings.Contains(text, fmt.Sprintf(`"answers":%d`, count-1)), text
		})
	}
	kvtest.Eventually(t, "both know the same", func() (bool, string) {
		one, other := first.known(), second.known()
		return one == other, difference(one, other)
	})
	second.stop()
	third := serveFleet(t, kvtest.Bind(t, srv), access.Options{})
	third.complete()
	kvtest.Eventually(t, "it knows what it knew before", func() (bool, string) {
		one, other := first.known(), third.known()
		return one == other, difference(one, other)
	})
}

// ask sends a request to nodes that answer at once, and waits for the first of them.
func ask(t *testing.T, store *kvtest.Store, family, request string) {
	t.Helper()
	for _, err := range store.Ask(t.Context(), store.Names().Request(kvstore.VerbEnsure, family), []byte(request)) {
		if err != nil {
			t.Fatal(err)
		}
		return // the others answer all the same
	}
}

// TestReportsInDisorder: reports that come out of order, twice, an hour late and by clocks that are a day
// wrong count once each, by the clock of the server; what cannot be read is counted and named. It is
// the same however it was read.
func TestReportsInDisorder(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	watching := serveFleet(t, kvtest.Bind(t, srv), access.Options{})
	watching.complete()
	const runs, nodes = 400, 20
	random := rand.New(rand.NewPCG(1, 2))
	var all []model.Report
	for i := range runs {
		node := fmt.Sprintf("web%02d", i%nodes)
		clock := []time.Duration{0, -time.Hour, 24 * time.Hour, -24 * time.Hour}[i%4]
		id, err := ksuid.NewRandomWithTime(time.Now().Add(clock))
		if err != nil {
			t.Fatal(err)
		}
		failed := model.Transaction{Type: "file", Name: "/etc/motd", Failed: true, Errors: []string{"no space left on device"}}
		for _, r := range []model.Report{transactionOf(t, node, id.String(), failed, model.OutcomeFailed, uint64(2*i+1)), runOf(t, node, id.String(), model.OutcomeFailed, uint64(2*i+2))} {
			r.Time = r.Time.Add(clock)
			all = append(all, r)
		}
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	broken, doubled := 0, 0
	for i, r := range all {
		send(t, store, r)
		event, err := reports.Event(r)
		if err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 { // without its id the server does not know that it has it
			doubled++
			put := all[random.IntN(i+1)]
			if event, err = reports.Event(put); err != nil {
				t.Fatal(err)
			}
			raw(t, store, store.Names().Report(put.Node, put.Kind, string(put.Outcome)), event)
		}
		if i%100 == 0 {
			data := [][]byte{nil, []byte("garbage"), event[:len(event)/2], []byte(`{"specversion":"1.0"}`), bytes.Replace(event, []byte("muster/node/web"), []byte("muster/node/db"), 1), []byte("\xff\xfe\x00"), []byte("[[[[]]]]"), []byte("null")}[broken%8]
			broken++
			raw(t, store, store.Names().Report("web01", model.KindRun, string(model.OutcomeStable)), data)
		}
	}
	if doubled != 80 || broken != 8 {
		t.Fatalf("%d doubled, %d broken", doubled, broken)
	}
	after := serveFleet(t, kvtest.Bind(t, srv), access.Options{})
	after.complete()
	for _, s := range []*served{watching, after} {
		kvtest.Eventually(t, "each counts once", func() (bool, string) {
			o, sum := s.overview(), 0
			for _, p := range o.History {
				sum += p.Failed
			}
			top := o.Top.Failing
			problem := "messages of the stream of reports that cannot be read, and are left out: 8; the last: invalid event on muster.report.web01.run.stable: "
			good := sum == runs && len(top) == 1 && top[0].Count == runs && top[0].Nodes == nodes && len(o.Progress.Problems) == 1 && strings.HasPrefix(o.Progress.Problems[0], problem)
			return good, fmt.Sprintf("%d failed, %+v, %v", sum, top, o.Progress.Problems)
		})
	}
	kvtest.Eventually(t, "both know the same", func() (bool, string) {
		one, other := watching.known(), after.known()
		return one == other, difference(one, other)
	})
	if page := after.text("/"); !strings.Contains(page, "cannot be read, and are left out: 8") {
		t.Error("the page does not say what is left out")
	}
	for _, r := range all[:8] {
		if page := after.text("/runs/" + r.Node + "/" + r.RunID); !strings.Contains(page, "no space left on device") {
			t.Errorf("the page of run %s of %s lacks its transaction", r.RunID, r.Node)
		}
	}
}

// raw stores what no node would publish, without an id.
func raw(t *testing.T, store *kvtest.Store, subject string, data []byte) {
	t.Helper()
	if _, err := store.JetStream().Publish(t.Context(), subject, data); err != nil {
		t.Fatal(err)
	}
}
