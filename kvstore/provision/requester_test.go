package provision_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// serving makes the nodes accept every kind of request, and returns the accepted ones.
func serving(t *testing.T, connect func(node string) *nats.Conn) <-chan string {
	t.Helper()
	accepted := make(chan string, 1000)
	for node, groups := range kvtest.GroupsOf {
		accept := func(verb string) requests.Accept {
			return func(_ context.Context, _ *model.Sender, request []byte, respond func(model.EnsureResponse)) {
				accepted <- verb + " " + node + " " + string(request)
				for _, phase := range []model.EnsurePhase{model.EnsureAcknowledged, model.EnsureRunning, model.EnsureDone} {
					respond(model.EnsureResponse{Phase: phase})
				}
			}
		}
		kvtest.Serve(t, kvtest.BindTo(t, connect(node)), requests.ServeOptions{Node: node, Groups: groups, Ensure: accept("ensure"), Run: accept("run"), Preview: accept("preview")})
	}

	return accepted
}

// servingOn is serving on a guarded server.
func servingOn(t *testing.T, g kvtest.Guarded) <-chan string {
	t.Helper()

	return serving(t, func(node string) *nats.Conn { return g.Connect(t, node) })
}

// phases asks, and returns how often each node answered, until all that are awaited have in three phases.
func phases(t *testing.T, s *kvtest.Store, subjects []string, want ...string) {
	t.Helper()
	var all []requests.Request
	for _, subject := range subjects {
		all = append(all, requests.Request{Subject: subject, Data: []byte("of " + s.User)})
	}
	ctx, cancel := context.WithTimeout(t.Context(), kvtest.Deadline)
	defer cancel()
	got := map[string]int{}
	for r, err := range s.Ask(ctx, all) {
		if err != nil {
			t.Fatalf("%q: %v", subjects, err)
		}
		if got[r.Node]++; !slices.ContainsFunc(want, func(node string) bool { return got[node] < 3 }) {
			break
		}
	}
	if len(got) != len(want) || ctx.Err() != nil {
		t.Errorf("%q: answers %v, want three of each of %q", subjects, got, want)
	}
}

// requester is what a dashboard with requests does: it asks nodes to run and to preview.
func requester(t *testing.T, s *kvtest.Store, accepted <-chan string) {
	t.Helper()
	names := s.Names
	for _, verb := range kvstore.RequesterVerbs() {
		kvtest.Eventually(t, "nodes serve "+verb, func() (bool, string) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			got := map[string]bool{}
			for r := range kvtest.Ask(ctx, s, names.Request(verb, "group.all"), []byte("are you there")) {
				if got[r.Node] = true; len(got) == 2 {
					return true, ""
				}
			}
			return false, fmt.Sprint(got)
		})
		if err := s.CheckRequests(t.Context(), verb); err != nil {
			t.Errorf("%s: %v", verb, err)
		}
		phases(t, s, []string{names.Request(verb, "group.all")}, "web01", "web02")
		phases(t, s, []string{names.Request(verb, "group.db")}, "web02")
		phases(t, s, []string{names.Request(verb, "node.web01")}, "web01")
		phases(t, s, []string{names.Request(verb, "node.web01"), names.Request(verb, "node.web02")}, "web01", "web02")
		seen := map[string]int{}
		for len(seen) < 2 || seen["web01"]+seen["web02"] < 6 {
			did := kvtest.Receive(t, accepted)
			if strings.HasSuffix(did, " of board") {
				if verb+" web01 of board" != did && verb+" web02 of board" != did {
					t.Fatalf("%s: nodes did %q", verb, did)
				}
				seen[strings.Fields(did)[1]]++
			}
		}
	}
}

// TestRequesterRunsAndPreviews: a dashboard that is no administrator has nodes run and preview, and gets
// all their answers.
func TestRequesterRunsAndPreviews(t *testing.T) {
	t.Parallel()
	onJoinedGuards(t, func(t *testing.T, g kvtest.Guarded) {
		accepted := servingOn(t, g)
		s := kvtest.BindTo(t, g.Connect(t, kvtest.Requester))
		populate(t, g)
		if nodes, err := s.Nodes(t.Context()); err != nil || len(nodes) != 2 {
			t.Errorf("nodes %v, %v", nodes, err)
		}
		if _, err := kvstore.NewControl(s.Store).Put(t.Context(), "group.all.pause", []byte("x")); err != nil {
			t.Error(err)
		}
		requester(t, s, accepted)
		// The administrator asks as before.
		for _, verb := range []string{kvstore.VerbEnsure, kvstore.VerbRun, kvstore.VerbPreview} {
			phases(t, g.Admin, []string{g.Admin.Names.Request(verb, "group.all")}, "web01", "web02")
		}
	})
}

// TestRequesterInACluster: the same where it, the nodes and the administrator are connected to one server
// each.
func TestRequesterInACluster(t *testing.T) {
	t.Parallel()
	servers := natstest.StartCluster(t, kvtest.AccountsConfig(t))
	connect := func(user string, server int) *nats.Conn {
		return servers[server].Connect(t, nats.UserInfo(user, user), nats.CustomInboxPrefix("_INBOX_"+user))
	}
	newCourier(t, servers[:])
	accepted := serving(t, func(node string) *nats.Conn { return connect(node, map[string]int{"web01": 1, "web02": 2}[node]) })
	requester(t, kvtest.BindTo(t, connect(kvtest.Requester, 0)), accepted)
}

// TestRequesterMayDoNothingElse goes through what its permissions do not name.
func TestRequesterMayDoNothingElse(t *testing.T) {
	t.Parallel()
	onJoinedGuards(t, func(t *testing.T, g kvtest.Guarded) {
		accepted := servingOn(t, g)
		const api = "fleet.API."
		publish := []string{
			// Other verbs, and where nodes listen to what streams say.
			"muster.ensure.node.web01", "muster.ensure.group.web", "muster.ensure.all", "muster.status.node.web01", "muster.facts.all", "muster.ping.all", "muster.exec.all",
			"muster.changed.node.web01.x", "muster.changed.command.node.web01.x", "muster.command.node.web01.x", "muster.command.group.all.x", "$SRV.PING", "$SRV.PING.muster",
			// Answers in the name of nodes: of the sender and of others.
			"muster.answer.board.x.web01", "muster.answer.other.x.web01", "_INBOX.x", "_INBOX_board.x", "_INBOX_web01.x", "_INBOX_looks.x", "_R_.x",
			// Buckets and streams.
			"$KV.MUSTER_MANIFESTS.node.web01.x", "$KV.MUSTER_MANIFESTS.group.all.x", "$KV.MUSTER_CONTROL.node.web01.labels", "$KV.MUSTER_CONTROL.node.web01.groups", "$KV.MUSTER_CONTROL.x",
			"$KV.MUSTER_NODES.web01.state", "$KV.MUSTER_NODES.web01.facts", "$KV.MUSTER_DATA.site", "$O.MUSTER_BUNDLES.M.x", "$O.MUSTER_BUNDLES.C.x",
			"muster.report.web01.run.stable", "muster.registration.a.b.c.web01.d.1",
			// JetStream.
			api + "INFO", api + "STREAM.NAMES", api + "STREAM.INFO.KV_MUSTER_NODES", api + "STREAM.INFO.MUSTER_REPORTS", api + "STREAM.MSG.GET.KV_MUSTER_MANIFESTS", api + "STREAM.CREATE.x", api + "STREAM.UPDATE.MUSTER_REPORTS",
			api + "STREAM.DELETE.MUSTER_REPORTS", api + "STREAM.PURGE.KV_MUSTER_MANIFESTS", api + "STREAM.MSG.DELETE.MUSTER_REPORTS", api + "STREAM.SNAPSHOT.KV_MUSTER_DATA", api + "STREAM.RESTORE.x",
			api + "CONSUMER.CREATE.MUSTER_REPORTS", api + "CONSUMER.CREATE.MUSTER_REPORTS.x.muster.report.>", api + "CONSUMER.MSG.NEXT.MUSTER_REPORTS.x", api + "CONSUMER.LIST.MUSTER_REPORTS",
			api + "DIRECT.GET.KV_MUSTER_DATA", api + "DIRECT.GET.KV_MUSTER_DATA.$KV.MUSTER_DATA.site", api + "DIRECT.GET.MUSTER_COMMANDS", api + "DIRECT.GET.MUSTER_COMMANDS.muster.command.>",
			api + "DIRECT.GET.OBJ_MUSTER_BUNDLES", api + "DIRECT.GET.OBJ_MUSTER_BUNDLES.$O.MUSTER_BUNDLES.M.x", "$JS.API.STREAM.LIST", "$JS.API.STREAM.DELETE.MUSTER_REPORTS", "$JS.ACK.x", "$SYS.REQ.USER.INFO", "$SYS.REQ.SERVER.PING",
		}
		subscribe := []string{
			">", "*", "*.>", "muster.>", "muster.run.>", "muster.run.node.web01", "muster.preview.all", "muster.ensure.>", "muster.changed.>", "muster.reply.>", "muster.reply.*.*", "muster.reply.*.web01",
			"muster.answer.>", "muster.answer.*.*.*", "muster.answer.other.*.*", "muster.answer.other.>", "muster.answer.*.*", "muster.requests", "_INBOX.>", "_INBOX_web01.>", "_INBOX_looks.>", "_INBOX_*.>", "_R_.>",
			"$KV.>", "$O.>", "$JS.>", "$SRV.>", "$SYS.>", "muster.report.>",
		}
		nc, violations := trespasser(t, g, kvtest.Requester)
		for _, subject := range publish {
			expectRefusal(t, kvtest.Requester, violations, "Publish", subject, func() error { return nc.PublishRequest(subject, "_INBOX_board.x", []byte("{}")) })
		}
		// The server looks at where it is mapped to.
		for _, node := range []string{"web01", "="} {
			expectRefusal(t, kvtest.Requester, violations, "Publish", "muster.answer.x."+node, func() error { return nc.Publish("muster.reply.x."+node, nil) })
			expectRefusal(t, kvtest.Requester, violations, "Publish", "muster.answer.board.0123456789012345678901."+node, func() error { return nc.Publish("muster.reply.board0123456789012345678901."+node, nil) })
		}
		for _, subject := range subscribe {
			expectRefusal(t, kvtest.Requester, violations, "Subscription", subject, func() error { _, err := nc.SubscribeSync(subject); return err })
		}
		s := kvtest.BindTo(t, nc)
		for _, verb := range []string{kvstore.VerbEnsure, kvstore.VerbStatus, kvstore.VerbFacts, kvstore.VerbPing} {
			if err := s.CheckRequests(t.Context(), verb); !errors.Is(err, requests.ErrRequestsNotPermitted) {
				t.Errorf("%s: %v", verb, err)
			}
			for _, err := range kvtest.Ask(t.Context(), s, s.Names.Request(verb, "node.web01"), nil) {
				if !errors.Is(err, requests.ErrNobody) || !errors.Is(err, requests.ErrRequestsNotPermitted) {
					t.Errorf("%s: %v", verb, err)
				}
			}
		}
		if len(accepted) > 0 {
			t.Errorf("a node did %q", <-accepted)
		}
	})
}

// TestRequesterOfOneVerb: permission to run assignments does not permit previews, which run other guards.
func TestRequesterOfOneVerb(t *testing.T) {
	t.Parallel()
	a := kvtest.Must(t, func() (provision.Accounts, error) { return provision.AccountsOf("") })
	runs := kvtest.Must(t, func() (provision.Permissions, error) {
		return provision.DashboardPermissions("", "runs", provision.Serving{Requests: []string{kvstore.VerbRun}})
	})
	if slices.ContainsFunc(runs.Publish, func(subject string) bool {
		return strings.HasPrefix(subject, "$KV.") || strings.Contains(subject, "preview")
	}) {
		t.Errorf("it may publish %q", runs.Publish)
	}
	user := func(name string) string {
		return fmt.Sprintf("{user: %s, password: %s, %s}", name, name, runs.ServerConfig())
	}
	srv := natstest.Start(t, natstest.WithConfig(a.ServerConfig(provision.Users{
		a.Fleet.Name: {"{user: admin, password: admin}"}, a.Requesters.Name: {user("runs")}, a.Operators.Name: {user("misplaced")},
	})))
	kvtest.Must(t, func() (any, error) {
		admin, err := kvtest.Of(srv.Connect(t, nats.UserInfo("admin", "admin")), "")
		if err == nil {
			_, err = admin.Apply(t.Context(), provision.Options{})
		}
		return nil, err
	})
	store := func(name string) *kvtest.Store {
		nc, err := connect.Dial(t.Context(), connect.Options{Servers: []string{srv.URL()}, User: name, Password: name, InboxPrefix: "_INBOX_runs", OnStatus: func(s connect.Status) {
			if errors.Is(s.Err, nats.ErrPermissionViolation) {
				t.Errorf("%s: a check is shown as a denial: %v", name, s.Err)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)

		return kvtest.BindTo(t, nc)
	}
	s := store("runs")
	if err := s.CheckRequests(t.Context(), kvstore.VerbRun); err != nil {
		t.Error(err)
	}
	if err := s.CheckRequests(t.Context(), kvstore.VerbPreview); !errors.Is(err, requests.ErrRequestsNotPermitted) {
		t.Error(err)
	}
	// The same permissions in another account reach no node, and the error says so.
	if err := store("misplaced").CheckRequests(t.Context(), kvstore.VerbRun); !errors.Is(err, requests.ErrRequestsNotPermitted) || !strings.Contains(err.Error(), "not in the account REQUESTERS") {
		t.Error(err)
	}
	for _, wrong := range []string{kvstore.VerbEnsure, "exec", "", "*", ">"} {
		if _, err := provision.DashboardPermissions("", "runs", provision.Serving{Requests: []string{wrong}}); !errors.Is(err, model.ErrInvalidName) {
			t.Errorf("requests of %q: %v", wrong, err)
		}
	}
}

// TestAnswersReachWhoAsked: requesters do not hear each other's answers, and no node answers for another,
// directly or through an answer of the server.
func TestAnswersReachWhoAsked(t *testing.T) {
	t.Parallel()
	onJoinedGuards(t, func(t *testing.T, g kvtest.Guarded) {
		servingOn(t, g)
		s := kvtest.BindTo(t, g.Connect(t, kvtest.Requester))
		spy := g.Connect(t, kvtest.Requester)
		heard, err := spy.SubscribeSync("muster.answer.board.*.*")
		if err == nil {
			err = spy.FlushTimeout(kvtest.Deadline)
		}
		if err != nil {
			t.Fatal(err)
		}
		kvtest.Answers(t, g.Admin, "muster.run.all", nil, 2)
		// Its connections share a name, and its answers follow those of others.
		kvtest.Answers(t, s, "muster.run.node.web01", nil, 1)
		m, err := heard.NextMsg(kvtest.Deadline)
		if err != nil || !strings.HasPrefix(m.Subject, "muster.answer.board.") || !strings.HasSuffix(m.Subject, ".web01") {
			t.Errorf("heard %+v, %v", m, err)
		}

		// A node that is asked lies.
		if _, err := g.Admin.Put(t.Context(), "node.web01.own", []byte(`{"node":"web02"}`)); err != nil {
			t.Fatal(err)
		}
		evil, violations := trespasser(t, g, "web01")
		natstest.Answer(t, evil, "muster.preview.group.web", func(m *nats.Msg) error {
			asked, _ := strings.CutSuffix(m.Reply, ".=")
			var all []error
			say := func(subject, node string) {
				all = append(all, evil.PublishMsg(&nats.Msg{Subject: subject, Header: nats.Header{requests.NodeHeader: {node}}, Data: []byte(`{"node":"web02"}`)}))
			}
			_, unique, _ := strings.Cut(strings.TrimPrefix(asked, "muster.reply."), "board")
			say(asked+".web02", "web02")
			say("muster.answer.board."+unique+".web02", "web02")
			say(asked+".web01", "web02")
			say(m.Reply, "web02")
			for _, reply := range []string{asked + ".web02", "muster.answer.board." + unique + ".web02"} {
				all = append(all, evil.PublishRequest("fleet.API.STREAM.LIST", reply, nil),
					evil.PublishRequest("fleet.API.DIRECT.GET.KV_MUSTER_MANIFESTS.$KV.MUSTER_MANIFESTS.node.web01.own", reply, nil))
			}
			say(asked+".web01", "web01")

			return errors.Join(all...)
		})
		ctx, cancel := context.WithTimeout(t.Context(), kvtest.Deadline)
		defer cancel()
		lied := false
		for r, err := range kvtest.Ask(ctx, s, "muster.preview.group.web", nil) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Node != "" && r.Node != "web01" {
				t.Errorf("answer of %q: %s", r.Node, r.Data)
			}
			if lied = r.Node == "web01" && strings.Contains(string(r.Data), "web02"); lied {
				break
			}
		}
		if !lied {
			t.Error("the node did not lie in its own name")
		}
		if err := <-violations; !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), ".web02") {
			t.Errorf("refused with %v", err)
		}
	})
}

// TestAnswersAreNoRequests: answers of the server that operators and requesters direct to subjects of nodes
// arrive at no node from the operators' account. From the requesters' account they arrive only on permitted
// subjects, and never as a request. In a cluster they do arrive, which is why requesters have an account.
func TestAnswersAreNoRequests(t *testing.T) {
	t.Parallel()
	for name, count := range map[string]int{"one server": 1, "cluster": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := kvtest.Must(t, func() (provision.Accounts, error) { return provision.AccountsOf("") })
			everything := provision.Permissions{Publish: []string{">"}, Subscribe: []string{">"}}.ServerConfig()
			user := func(name string) string { return fmt.Sprintf("{user: %s, password: %s, %s}", name, name, everything) }
			users := provision.Users{
				a.Fleet.Name: {"{user: admin, password: admin}"}, a.Nodes.Name: {user("ear")},
				a.Operators.Name: {user("operator")}, a.Requesters.Name: {user("requester")},
			}
			for node := range kvtest.GroupsOf {
				users[a.Nodes.Name] = append(users[a.Nodes.Name], fmt.Sprintf("{user: %s, password: %s, %s}", node, node, kvtest.PermissionsOf(t, node).ServerConfig()))
			}
			servers := []*natstest.Server{}
			if count == 1 {
				servers = append(servers, natstest.Start(t, natstest.WithConfig(a.ServerConfig(users))))
			} else {
				cluster := natstest.StartCluster(t, a.ServerConfig(users))
				servers = append(servers, cluster[:]...)
			}
			last := servers[count-1]
			newCourier(t, servers)
			admin := servers[0].Connect(t, nats.UserInfo("admin", "admin"))
			kvtest.Eventually(t, "a request is stored", func() (bool, string) {
				_, err := kvtest.PlainKV(t, admin, "MUSTER_NODES").PutString(t.Context(), "evil.state", `{"protocol":"`+model.ProtocolRunRequest+`","id":"evil"}`)
				return err == nil, fmt.Sprint(err)
			})
			accepted := serving(t, func(node string) *nats.Conn {
				return last.Connect(t, nats.UserInfo(node, node), nats.CustomInboxPrefix("_INBOX_"+node))
			})
			heard := listen(t, last.Connect(t, nats.UserInfo("ear", "ear")))
			targets := []string{
				"muster.run.node.web01", "muster.run.group.db", "muster.run.all", "muster.preview.node.web01", "muster.preview.all",
				"muster.ensure.node.web01", "muster.ensure.all", "muster.status.all", "muster.ping.all", "muster.changed.node.web01.x", "muster.changed.command.node.web01.evil", "$SRV.PING.muster",
			}
			for _, who := range []string{"operator", "requester"} {
				nc := servers[0].Connect(t, nats.UserInfo(who, who))
				arrived := listen(t, nc)
				reads := []string{"fleet.API.DIRECT.GET.KV_MUSTER_NODES.$KV.MUSTER_NODES.evil.state", "fleet.API.DIRECT.GET.KV_MUSTER_NODES.$KV.MUSTER_NODES.none.state", "fleet.API.STREAM.LIST"}
				for _, target := range targets {
					for _, read := range reads {
						if err := nc.PublishRequest(read, target, nil); err != nil {
							t.Fatal(err)
						}
					}
				}
				kvtest.Eventually(t, who+"'s answers", func() (bool, string) {
					got := arrived(targets)
					return len(got) == len(targets)*len(reads), fmt.Sprint(got)
				})
			}
			// Earlier messages arrive before a request of the same account.
			requester := servers[0].Connect(t, nats.UserInfo("requester", "requester"))
			kvtest.Eventually(t, "the request behind them", func() (bool, string) {
				if err := requester.Publish("muster.preview.node.web02", []byte("the last")); err != nil {
					return false, err.Error()
				}
				for {
					select {
					case did := <-accepted:
						switch {
						case strings.HasSuffix(did, "the last"):
							return true, ""
						case strings.HasPrefix(did, "ensure") || strings.Contains(did, "evil") || !strings.Contains(did, "io.nats.jetstream"):
							t.Errorf("a node took %q", did)
						case count == 1:
							t.Errorf("a node was reached by %q", did)
						}
					case <-time.After(100 * time.Millisecond):
						return false, "not heard"
					}
				}
			})
			reached := map[string]int{}
			for _, subject := range heard(targets) {
				reached[subject]++
			}
			for subject, times := range reached {
				t.Logf("%s: %d times", subject, times)
				if !strings.HasPrefix(subject, "muster.run.") && !strings.HasPrefix(subject, "muster.preview.") {
					t.Errorf("%s reached nodes, %d times", subject, times)
				}
				// The operator's messages would follow the three of the requester.
				if times > 3 {
					t.Errorf("%s reached nodes %d times", subject, times)
				}
			}
			if (len(reached) > 0) != (count > 1) {
				t.Errorf("on %d servers nodes are reached by %v: it is not any more as docs/decisions/0056 says", count, reached)
			}
		})
	}
}

// TestRequestersAreAddedByReload: a running fleet gets the account by two reloads, like other accounts. Then
// requests reach its nodes, whose connections stay, and the administrator's requests work as before.
func TestRequestersAreAddedByReload(t *testing.T) {
	t.Parallel()
	config := kvtest.AccountsConfig(t)
	var earlier strings.Builder
	for line := range strings.Lines(config) {
		if strings.HasPrefix(line, "  REQUESTERS: {") {
			break
		}
		if line = strings.ReplaceAll(line, ", REQUESTERS]", "]"); !strings.Contains(line, "REQUESTERS") {
			earlier.WriteString(line)
		}
	}
	srv := natstest.Start(t, natstest.WithConfig(earlier.String()+"}\n"))
	newCourier(t, []*natstest.Server{srv})
	connect := func(user string) *nats.Conn {
		return srv.Connect(t, nats.UserInfo(user, user), nats.CustomInboxPrefix("_INBOX_"+user))
	}
	nodes := map[string]*nats.Conn{}
	accepted := serving(t, func(node string) *nats.Conn {
		nodes[node] = connect(node)
		return nodes[node]
	})
	admin := kvtest.Must(t, func() (*kvtest.Store, error) {
		return kvtest.Of(srv.Connect(t, nats.UserInfo("admin", "admin")), "")
	})
	asked := func() {
		t.Helper()
		kvtest.Answers(t, admin, "muster.preview.all", nil, 2)
		phases(t, admin, []string{"muster.run.all"}, "web01", "web02")
	}
	asked()
	if nc, err := nats.Connect(srv.URL(), nats.UserInfo(kvtest.Requester, kvtest.Requester)); err == nil {
		nc.Close()
		t.Error("the account is there before the reload")
	}
	for range 2 {
		srv.Reload(t, config)
		asked()
	}
	requester(t, kvtest.BindTo(t, connect(kvtest.Requester)), accepted)
	for node, nc := range nodes {
		if n := nc.Stats().Reconnects; n > 0 {
			t.Errorf("%s connected again, %d times", node, n)
		}
	}
}
