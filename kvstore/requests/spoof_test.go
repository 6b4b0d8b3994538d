package requests_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// TestNobodyAnswersForAnother: a node hears a request to all nodes and answers in the name of another: on
// that node's subject, on an unknown node's subject, with a header, and without one. Only its answers for
// itself count.
func TestNobodyAnswersForAnother(t *testing.T) {
	t.Parallel()
	for name, guard := range map[string]func(*testing.T) kvtest.Guarded{"one account": kvtest.OneAccount, "two accounts": kvtest.ByConfig} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guard(t)
			var refused atomic.Int64
			evil := g.Server.Connect(t, nats.UserInfo("web02", "web02"), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) { refused.Add(1) }))
			answer := func(m *nats.Msg) error {
				own := g.Admin.Names.AnswerSubject(m.Reply, "web02")
				for _, subject := range []string{g.Admin.Names.AnswerSubject(m.Reply, "web01"), m.Reply, own} {
					for _, header := range []nats.Header{{requests.NodeHeader: {"web01"}}, {requests.NodeHeader: {"web02", "web01"}}, {}} {
						if subject == own && header.Get(requests.NodeHeader) == "web02" {
							continue
						}
						if err := evil.PublishMsg(&nats.Msg{Subject: subject, Header: header, Data: []byte("lie")}); err != nil {
							return err
						}
					}
				}

				return evil.PublishMsg(&nats.Msg{Subject: own, Header: nats.Header{requests.NodeHeader: {"web02"}}, Data: []byte("the last")})
			}
			verbs := []string{kvstore.VerbPing, kvstore.VerbEnsure}
			for _, verb := range verbs {
				natstest.Answer(t, evil, g.Admin.Names.Request(verb, "group.all"), answer)
			}
			for _, verb := range verbs {
				ctx, cancel := context.WithTimeout(t.Context(), kvtest.Deadline)
				seen := map[string]string{}
				for r, err := range kvtest.Ask(ctx, g.Admin, g.Admin.Names.Request(verb, "group.all"), []byte(`{}`)) {
					if err != nil {
						t.Fatal(err)
					}
					if seen[r.Node] += string(r.Data); strings.HasSuffix(seen["web02"], "the last") {
						break
					}
				}
				cancel()
				if seen["web01"] != "" || seen["web02"] != "the last" {
					t.Errorf("%s: %q", verb, seen)
				}
			}
			if refused.Load() == 0 {
				t.Error("the server refused nothing: the lies were not told")
			}
		})
	}
}
