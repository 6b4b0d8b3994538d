package serve

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

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
		event, err := kvstore.Reports{}.Event(r)
		if err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 { // without its id the server does not know that it has it
			doubled++
			put := all[random.IntN(i+1)]
			if event, err = (kvstore.Reports{}).Event(put); err != nil {
				t.Fatal(err)
			}
			raw(t, store, store.Names.Report(put.Node, put.Kind, string(put.Outcome)), event)
		}
		if i%100 == 0 {
			data := [][]byte{nil, []byte("garbage"), event[:len(event)/2], []byte(`{"specversion":"1.0"}`), bytes.Replace(event, []byte("muster/node/web"), []byte("muster/node/db"), 1), []byte("\xff\xfe\x00"), []byte("[[[[]]]]"), []byte("null")}[broken%8]
			broken++
			raw(t, store, store.Names.Report("web01", model.KindRun, string(model.OutcomeStable)), data)
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
			problem := "Messages of the stream of reports cannot be read, and are neither listed nor counted: 8; the last: invalid event on muster.report.web01.run.stable: "
			good := sum == runs && len(top) == 1 && top[0].Count == runs && top[0].Nodes == nodes && len(o.Progress.Problems) == 0 && len(o.Progress.Incomplete) == 1 && strings.HasPrefix(o.Progress.Incomplete[0], problem)
			return good, fmt.Sprintf("%d failed, %+v, %v", sum, top, o.Progress)
		})
	}
	kvtest.Eventually(t, "both know the same", func() (bool, string) {
		one, other := watching.known(), after.known()
		return one == other, difference(one, other)
	})
	if page := after.text("/events"); !strings.Contains(page, "cannot be read, and are neither listed nor counted: 8") {
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
