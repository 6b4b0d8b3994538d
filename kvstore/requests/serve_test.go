package requests_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

func TestEveryNodeOfATargetAnswers(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	for node, group := range map[string]string{"web01": "web", "web02": "web", "db01": "db"} {
		kvtest.Serve(t, kvtest.Bind(t, srv), requests.ServeOptions{
			Node: node, Groups: []string{group}, Version: "v1.2.3-rc1",
			Status: func(_ context.Context, request []byte) (any, error) { return string(request) + " of " + node, nil },
			Facts: func(context.Context, []byte) (any, error) {
				if node == "db01" {
					return nil, errors.New("no\nfacts")
				}

				return model.Facts{"host": node}, nil
			},
		})
	}
	names := store.Names
	kvtest.Answers(t, store, names.Request(kvstore.VerbPing, "group.all"), nil, 3)
	for _, tt := range []struct {
		verb, family, request string
		want                  map[string]string
	}{
		{verb: "ping", family: "node.web01", want: map[string]string{"web01": `"web01"`}},
		{verb: "ping", family: "group.web", want: map[string]string{"web01": `"web01"`, "web02": `"web02"`}},
		{verb: "status", family: "group.all", request: "x", want: map[string]string{"web01": `"x of web01"`, "web02": `"x of web02"`, "db01": `"x of db01"`}},
		{verb: "facts", family: "group.all", want: map[string]string{"web01": `{"host":"web01"}`, "web02": `{"host":"web02"}`, "db01": "no facts"}},
	} {
		got := kvtest.Answers(t, store, names.Request(tt.verb, tt.family), []byte(tt.request), len(tt.want))
		if !maps.Equal(got, tt.want) {
			t.Errorf("%s of %s = %v, want %v", tt.verb, tt.family, got, tt.want)
		}
	}
	for _, err := range kvtest.Ask(t.Context(), store, names.Request("ping", "node.none"), nil) {
		if !errors.Is(err, requests.ErrNobody) {
			t.Errorf("ask nobody = %v", err)
		}
	}
	// What has no handler is not offered.
	for _, err := range kvtest.Ask(t.Context(), store, names.Request("ensure", "node.web01"), nil) {
		if !errors.Is(err, requests.ErrNobody) {
			t.Errorf("ask for an ensure = %v", err)
		}
	}
}

func TestServiceIsDiscovered(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	versions := map[string]string{"v1.2.3-rc.1+dirty": "1.2.3-rc.1+dirty", "1.2.3-01": "0.0.0-devel"}
	for node, version := range map[string]string{"web01": "v1.2.3-rc.1+dirty", "web02": "1.2.3-01"} {
		kvtest.Serve(t, kvtest.Bind(t, srv), requests.ServeOptions{Node: node, Version: version})
	}
	kvtest.Answers(t, store, "muster.ping.all", nil, 2)
	nodes := map[string]bool{}
	for r, err := range kvtest.Ask(t.Context(), store, "$SRV.INFO.muster", nil) {
		if err != nil {
			t.Fatal(err)
		}
		var info micro.Info
		if err := json.Unmarshal(r.Data, &info); err != nil {
			t.Fatal(err)
		}
		for _, e := range info.Endpoints {
			if e.QueueGroup != "" {
				t.Errorf("endpoint %s has queue group %q", e.Name, e.QueueGroup)
			}
		}
		if want := versions[info.Metadata["version"]]; want == "" || info.Version != want {
			t.Errorf("info = %+v", info)
		}
		if nodes[info.Metadata["node"]] = true; len(nodes) == 2 {
			break
		}
	}
	if !nodes["web01"] || !nodes["web02"] {
		t.Errorf("nodes = %v", nodes)
	}
}

// The code of an error tells whose fault it is.
func TestErrorCodes(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	kvtest.Serve(t, kvtest.Bind(t, srv), requests.ServeOptions{
		Node:   "web01",
		Status: func(context.Context, []byte) (any, error) { return nil, model.Problem{Message: "unknown type"} },
		Facts:  func(context.Context, []byte) (any, error) { return nil, errors.New("the disk is broken") },
		Ping:   func(context.Context, []byte) (any, error) { return strings.Repeat("x", 2<<20), nil },
	})
	for verb, want := range map[string]string{"status": "400 unknown type", "facts": "500 the disk is broken", "ping": "500 "} {
		kvtest.Answers(t, store, "muster."+verb+".node.web01", nil, 1) // it is offered
		m, err := srv.Connect(t).Request("muster."+verb+".node.web01", nil, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Header.Get(micro.ErrorCodeHeader) + " " + m.Header.Get(micro.ErrorHeader); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", verb, got)
		}
	}
}

func TestEnsureIsAnsweredInPhases(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	var later sync.WaitGroup
	kvtest.Serve(t, kvtest.Bind(t, srv), requests.ServeOptions{
		Node: "web01",
		Ensure: func(_ context.Context, _ *model.Sender, request []byte, respond func(model.EnsureResponse)) {
			respond(model.EnsureResponse{ID: string(request), Phase: model.EnsureAcknowledged})
			later.Go(func() {
				respond(model.EnsureResponse{Phase: model.EnsureRunning})
				state := &model.Transaction{Name: "/etc/motd", Changed: true}
				if string(request) == "long" {
					state.Properties = json.RawMessage(`"` + strings.Repeat("x", 2<<20) + `"`)
				}
				respond(model.EnsureResponse{Phase: model.EnsureDone, State: state})
			})
		},
	})
	kvtest.Answers(t, store, "muster.ping.all", nil, 1)
	for _, request := range []string{"short", "long"} {
		var phases []model.EnsurePhase
		for r, err := range kvtest.Ask(t.Context(), store, "muster.ensure.node.web01", []byte(request)) {
			if err != nil {
				t.Fatal(err)
			}
			var response model.EnsureResponse
			if err := json.Unmarshal(r.Data, &response); err != nil {
				t.Fatal(err)
			}
			if r.Node != "web01" || response.Node != "web01" {
				t.Errorf("answer of %s, %s", r.Node, response.Node)
			}
			if phases = append(phases, response.Phase); response.Phase.Final() {
				if response.State == nil || response.State.Name != "/etc/motd" || response.State.Properties != nil {
					t.Errorf("state = %+v", response.State)
				}

				break
			}
		}
		if want := []model.EnsurePhase{"acknowledged", "running", "done"}; !slices.Equal(phases, want) {
			t.Errorf("%s: phases %v, want %v", request, phases, want)
		}
	}
	later.Wait()
}

// A node that pretends that nobody listens does not end what is asked of others.
func TestStatusOfANodeEndsNoQuestion(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	pretend := make(chan struct{})
	kvtest.Serve(t, kvtest.Bind(t, srv), requests.ServeOptions{
		Node: "web01",
		Ensure: func(_ context.Context, _ *model.Sender, _ []byte, respond func(model.EnsureResponse)) {
			respond(model.EnsureResponse{Phase: model.EnsureAcknowledged})
			go func() {
				<-pretend
				respond(model.EnsureResponse{Phase: model.EnsureDone})
			}()
		},
	})
	kvtest.Answers(t, store, "muster.ping.all", nil, 1)
	evil := srv.Connect(t)
	asked := make(chan string, 1)
	if _, err := evil.Subscribe("muster.ensure.all", func(m *nats.Msg) { asked <- m.Reply }); err != nil {
		t.Fatal(err)
	}
	if err := evil.Flush(); err != nil {
		t.Fatal(err)
	}
	phases := ""
	for r, err := range kvtest.Ask(t.Context(), store, "muster.ensure.all", nil) {
		if err != nil {
			t.Fatal(err)
		}
		var response model.EnsureResponse
		if err := json.Unmarshal(r.Data, &response); err != nil {
			t.Fatal(err)
		}
		if phases += string(response.Phase) + " "; response.Phase.Final() {
			break
		}
		m := nats.NewMsg(<-asked)
		m.Header.Set("Status", "503")
		if err := errors.Join(evil.PublishMsg(m), evil.Flush()); err != nil {
			t.Fatal(err)
		}
		close(pretend)
	}
	if phases != "acknowledged done " {
		t.Errorf("answered %s", phases)
	}
}

// A node that may read its own commands can have a consumer deliver them to
// another node, which must not take them.
func TestWhatAConsumerDeliversIsNotExecuted(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	executed := make(chan string, 10)
	kvtest.Serve(t, kvtest.Bind(t, srv), requests.ServeOptions{
		Node: "web02",
		Ensure: func(_ context.Context, _ *model.Sender, request []byte, _ func(model.EnsureResponse)) {
			executed <- string(request)
		},
	})
	kvtest.TakeCommands(t, kvtest.Bind(t, srv), requests.CommandOptions{Node: "web02"}, func(c requests.Command) { executed <- string(c.Data) })
	kvtest.Answers(t, store, "muster.ping.all", nil, 1)
	if err := store.PutCommand(t.Context(), "node.web01", "id", []byte("meant for web01"), time.Hour); err != nil {
		t.Fatal(err)
	}
	nc := srv.Connect(t)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := nc.SubscribeSync("muster.ensure.node.web02")
	if err != nil {
		t.Fatal(err)
	}
	for i, policy := range []jetstream.AckPolicy{jetstream.AckNonePolicy, jetstream.AckExplicitPolicy, jetstream.AckAllPolicy} {
		_, err := js.CreatePushConsumer(t.Context(), "MUSTER_COMMANDS", jetstream.ConsumerConfig{
			Name: fmt.Sprint("queued", i), FilterSubject: "muster.command.node.web01.id", DeliverSubject: "muster.changed.command.node.web02.id", AckPolicy: policy,
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = js.CreatePushConsumer(t.Context(), "MUSTER_COMMANDS", jetstream.ConsumerConfig{
			Name: fmt.Sprint("evil", i), FilterSubject: "muster.command.node.web01.id", DeliverSubject: "muster.ensure.node.web02", AckPolicy: policy,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := seen.NextMsg(kvtest.Deadline); err != nil {
			t.Fatalf("not even delivered: %v", err)
		}
	}
	// A request behind them is taken, and it is the only one.
	if err := nc.PublishRequest("muster.ensure.node.web02", nc.NewInbox(), []byte("meant for web02")); err != nil {
		t.Fatal(err)
	}
	if got := <-executed; got != "meant for web02" {
		t.Errorf("executed %q", got)
	}
}

func TestServeWaitsForItsHandlers(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	begun, release := make(chan struct{}), make(chan struct{})
	var finished sync.WaitGroup
	finished.Add(1)
	stop := kvtest.Serve(t, kvtest.Bind(t, srv), requests.ServeOptions{
		Node: "web01",
		Status: func(ctx context.Context, _ []byte) (any, error) {
			close(begun)
			<-ctx.Done()
			<-release
			finished.Done()

			return nil, nil
		},
	})
	kvtest.Answers(t, store, "muster.ping.all", nil, 1)
	if err := srv.Connect(t).Publish("muster.status.node.web01", nil); err != nil {
		t.Fatal(err)
	}
	<-begun
	go func() { close(release) }()
	stop()
	finished.Wait()
	// The server may still have to hear of it.
	kvtest.Eventually(t, "nobody listens", func() (bool, string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, err := range kvtest.Ask(ctx, store, "muster.ping.all", nil) {
			return errors.Is(err, requests.ErrNobody), fmt.Sprint(err)
		}

		return false, "no answer at all"
	})
}

func TestServeSurvivesARestart(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	kvtest.Serve(t, kvtest.Bind(t, srv), requests.ServeOptions{Node: "web01"})
	kvtest.Answers(t, store, "muster.ping.node.web01", nil, 1)
	srv.Restart(t)
	kvtest.Answers(t, store, "muster.ping.node.web01", nil, 1)
}

// TestServeIsReady tells when no request is missed any more: the ones that follow are asked once.
func TestServeIsReady(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	for i := range 20 {
		ready, node := make(chan struct{}), fmt.Sprintf("web%02d", i)
		kvtest.Serve(t, kvtest.Bind(t, srv), requests.ServeOptions{Node: node, Groups: []string{"web", "dmz"}, Ready: func() { close(ready) }})
		kvtest.Receive(t, ready)
		for reply, err := range kvtest.Ask(t.Context(), store, store.Names.Request(kvstore.VerbPing, model.NodeFamily(node)), nil) {
			if err != nil || reply.Node != node {
				t.Errorf("%s answers %+v, %v", node, reply, err)
			}
			break
		}
	}
}

func TestServeRefusesAndEnds(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	if err := store.Serve(t.Context(), requests.ServeOptions{Node: "web.01"}); !errors.Is(err, model.ErrInvalidName) {
		t.Errorf("serve = %v", err)
	}
	node := kvtest.Bind(t, srv)
	ended := make(chan error, 1)
	go func() {
		ended <- node.Serve(t.Context(), requests.ServeOptions{Node: "web01", Ping: func(context.Context, []byte) (any, error) { return func() {}, nil }})
	}()
	for _, problem := range kvtest.Answers(t, store, "muster.ping.all", nil, 1) {
		if !strings.Contains(problem, "unsupported type") {
			t.Errorf("answer that cannot be encoded = %q", problem)
		}
	}
	node.Conn.Close()
	if err := <-ended; !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("serve on a closed connection = %v", err)
	}
	for _, err := range kvtest.Ask(t.Context(), store, "muster.ping.all", make([]byte, 2<<20)) {
		if !errors.Is(err, model.ErrTooLarge) {
			t.Errorf("long request = %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range kvtest.Ask(ctx, store, "muster.ping.all", nil) {
		t.Error("an answer after the end")
	}
}
