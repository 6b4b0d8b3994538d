package kvstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/testing/alone"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

func TestMain(m *testing.M) {
	natstest.PrepareBubbles()
	os.Exit(m.Run())
}

func shop(node, address string, priority int) registration.Registration {
	return registration.Registration{
		Protocol: model.ProtocolRegistration, Cluster: "prod", Service: "shop", ProtocolName: "http", Address: address, Port: 8080, Priority: priority,
		TTL: model.TTL(time.Hour), Annotations: map[string]string{"rack": "b4"}, Node: node,
	}
}

func register(t *testing.T, s *kvtest.Store, all ...registration.Registration) {
	t.Helper()
	for _, r := range all {
		if err := s.Register(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

func found(t *testing.T, s *kvtest.Store, f kvstore.RegistrationFilter) string {
	t.Helper()
	all, err := s.Registrations(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range all {
		out = append(out, fmt.Sprintf("%s/%s/%s/%s:%d@%s", r.Cluster, r.ProtocolName, r.Service, r.Address, r.Port, r.Node))
	}

	return strings.Join(out, " ")
}

func TestRegistrationsAreFound(t *testing.T) {
	_, s := kvtest.New(t)
	db := shop("db01", "fd00::1", 1)
	db.Service, db.ProtocolName, db.Port = "db", "mysql", 3306
	test := shop("web03", "10.0.0.3", 9)
	test.Cluster = "test"
	named := shop("web04", "web04.example.net", 200)
	named.Cluster = "dev"
	register(t, s, named, shop("web02", "10.0.0.2", 20), shop("web01", "10.0.0.1", 10), db, test, shop("web01", "10.0.0.1", 30))
	for _, c := range []struct {
		name string
		f    kvstore.RegistrationFilter
		want string
	}{
		{"all", kvstore.RegistrationFilter{}, "prod/mysql/db/fd00::1:3306@db01 test/http/shop/10.0.0.3:8080@web03 prod/http/shop/10.0.0.2:8080@web02 prod/http/shop/10.0.0.1:8080@web01 dev/http/shop/web04.example.net:8080@web04"},
		{"by wildcards", kvstore.RegistrationFilter{Cluster: "*", Protocol: "*", Service: "*", Node: "*", Address: "*"}, "prod/mysql/db/fd00::1:3306@db01 test/http/shop/10.0.0.3:8080@web03 prod/http/shop/10.0.0.2:8080@web02 prod/http/shop/10.0.0.1:8080@web01 dev/http/shop/web04.example.net:8080@web04"},
		{"cluster", kvstore.RegistrationFilter{Cluster: "test"}, "test/http/shop/10.0.0.3:8080@web03"},
		{"protocol", kvstore.RegistrationFilter{Protocol: "mysql"}, "prod/mysql/db/fd00::1:3306@db01"},
		{"service", kvstore.RegistrationFilter{Cluster: "prod", Service: "shop"}, "prod/http/shop/10.0.0.2:8080@web02 prod/http/shop/10.0.0.1:8080@web01"},
		{"node", kvstore.RegistrationFilter{Node: "web01"}, "prod/http/shop/10.0.0.1:8080@web01"},
		{"address", kvstore.RegistrationFilter{Address: "10.0.0.2"}, "prod/http/shop/10.0.0.2:8080@web02"},
		{"address of IPv6", kvstore.RegistrationFilter{Address: "fd00::1"}, "prod/mysql/db/fd00::1:3306@db01"},
		{"address in another form", kvstore.RegistrationFilter{Address: "FD00:0::1"}, "prod/mysql/db/fd00::1:3306@db01"},
		{"host name", kvstore.RegistrationFilter{Address: "WEB04.Example.net"}, "dev/http/shop/web04.example.net:8080@web04"},
		{"none", kvstore.RegistrationFilter{Service: "mail"}, ""},
	} {
		if got := found(t, s, c.f); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
	all, err := s.Registrations(t.Context(), kvstore.RegistrationFilter{Node: "web01"})
	if err != nil || all[0].Priority != 30 || all[0].Annotations["rack"] != "b4" || all[0].Expires.Sub(all[0].At) != time.Hour {
		t.Errorf("%+v, %v", all, err)
	}
	if err := s.Withdraw(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if got := found(t, s, kvstore.RegistrationFilter{Service: "db"}); got != "" {
		t.Errorf("%s is still there", got)
	}
}

func TestManyRegistrations(t *testing.T) {
	_, s := kvtest.New(t)
	for i := range 520 {
		r := shop(fmt.Sprintf("web%d", i), "10.0.0.1", 1)
		register(t, s, r)
	}
	all, err := s.Registrations(t.Context(), kvstore.RegistrationFilter{Service: "shop"})
	if err != nil || len(all) != 520 {
		t.Errorf("%d, %v", len(all), err)
	}
}

func TestRegistrationsEndByThemselves(t *testing.T) {
	srv, s := kvtest.New(t)
	r := shop("web01", "10.0.0.1", 1)
	r.TTL = model.TTL(time.Second)
	register(t, s, r, shop("web02", "10.0.0.2", 1))
	stream, err := kvtest.Manager(t, srv).LoadStream("MUSTER_REGISTRATIONS")
	if err != nil {
		t.Fatal(err)
	}
	kvtest.Eventually(t, "the server forgot one", func() (bool, string) {
		state, err := stream.State()
		return err == nil && state.Msgs == 1, fmt.Sprint(state, err)
	})
	if got := found(t, s, kvstore.RegistrationFilter{}); got != "prod/http/shop/10.0.0.2:8080@web02" {
		t.Error(got)
	}
}

// bubble runs a test with a fake clock, so registrations of a second last until the test has seen them. It
// runs in a separate process, because clients share timers, which must stay in the bubble.
func bubble(t *testing.T, f func(t *testing.T, srv *natstest.Bubble, s *kvtest.Store)) {
	t.Helper()
	if !alone.Run(t) {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		srv, s, stop := kvtest.InBubble(t)
		defer stop()
		f(t, srv, s)
	})
}

// TestWatchOfRegistrations sees existing, new, withdrawn and expired registrations.
func TestWatchOfRegistrations(t *testing.T) {
	bubble(t, func(t *testing.T, _ *natstest.Bubble, s *kvtest.Store) {
		register(t, s, shop("web01", "10.0.0.1", 1))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		events := make(chan string)
		ended := make(chan error, 1)
		go func() {
			var last error
			for r, err := range s.WatchRegistrations(ctx, kvstore.RegistrationFilter{Service: "shop"}) {
				if last = err; err == nil {
					events <- fmt.Sprintf("%s %s gone=%t", r.Node, r.Address, r.Gone)
				}
			}
			ended <- last
		}()
		expect := func(want string) {
			t.Helper()
			select {
			case got := <-events:
				if got != want {
					t.Fatalf("got %q, want %q", got, want)
				}
			case <-time.After(kvtest.Deadline):
				t.Fatalf("%q did not come", want)
			}
		}
		expect("web01 10.0.0.1 gone=false")
		expect("  gone=false")
		register(t, s, shop("web02", "10.0.0.2", 1))
		expect("web02 10.0.0.2 gone=false")
		if err := s.Withdraw(t.Context(), shop("web02", "10.0.0.2", 1)); err != nil {
			t.Fatal(err)
		}
		expect("web02 10.0.0.2 gone=true")
		brief := shop("web03", "10.0.0.3", 1)
		brief.TTL = model.TTL(time.Second)
		register(t, s, brief)
		expect("web03 10.0.0.3 gone=false")
		expect("web03 10.0.0.3 gone=true")
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestRegistrationsWithoutAnEnd: a TTL may be longer than a day, or never end.
func TestRegistrationsWithoutAnEnd(t *testing.T) {
	t.Parallel()
	srv, s := kvtest.New(t)
	m := kvtest.Manager(t, srv)
	if age := kvtest.Config(t, m, "MUSTER_REGISTRATIONS").MaxAge; age < 365*24*time.Hour {
		t.Errorf("the server deletes registrations after %s", age)
	}
	never, days := shop("web01", "10.0.0.1", 1), shop("web02", "10.0.0.2", 2)
	never.TTL, never.Port, days.TTL = model.Never, 0, model.TTL(100*time.Hour)
	register(t, s, never, days)
	all, err := s.Registrations(t.Context(), kvstore.RegistrationFilter{})
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	if all[0].TTL != model.Never || !all[0].Expires.IsZero() || all[0].Port != 0 || all[1].Expires.Sub(all[1].At) != 100*time.Hour {
		t.Errorf("%+v", all)
	}
	if text, err := json.Marshal(all[0]); err != nil || !strings.Contains(string(text), `"ttl":"never"`) || strings.Contains(string(text), "expires") {
		t.Errorf("%s, %v", text, err)
	}
	stream, err := s.JetStream().Stream(t.Context(), "MUSTER_REGISTRATIONS")
	if err != nil {
		t.Fatal(err)
	}
	for subject, want := range map[string]string{"muster.registration.prod.http.shop.web01.10_0_0_1.0": "never", "muster.registration.prod.http.shop.web02.10_0_0_2.8080": "100h0m0s"} {
		if stored, err := stream.GetLastMsgForSubject(t.Context(), subject); err != nil || stored.Header.Get("Nats-TTL") != want {
			t.Errorf("%s: %+v, %v", subject, stored, err)
		}
	}

	// The maximum age of the stream does not end it.
	kvtest.Update(t, m, "MUSTER_REGISTRATIONS", func(c *api.StreamConfig) { c.MaxAge = time.Second })
	kvtest.Eventually(t, "the server deleted the other one", func() (bool, string) {
		got := found(t, s, kvstore.RegistrationFilter{})
		return got == "prod/http/shop/10.0.0.1:0@web01", got
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var events []string
	for r, err := range s.WatchRegistrations(ctx, kvstore.RegistrationFilter{}) {
		switch {
		case errors.Is(err, context.Canceled):
		case err != nil:
			t.Fatal(err)
		case r.Node == "":
			if err := s.Withdraw(t.Context(), never); err != nil {
				t.Fatal(err)
			}
		default:
			events = append(events, fmt.Sprintf("%s gone=%t", r.Node, r.Gone))
			if r.Gone {
				cancel()
			}
		}
	}
	if got := strings.Join(events, ", "); got != "web01 gone=false, web01 gone=true" {
		t.Error(got)
	}
	if got := found(t, s, kvstore.RegistrationFilter{}); got != "" {
		t.Error(got)
	}
}

// TestWatchWhileNATSIsAway: what held when NATS went away holds until it was
// there again for long enough to be yielded again.
func TestWatchWhileNATSIsAway(t *testing.T) {
	bubble(t, func(t *testing.T, srv *natstest.Bubble, s *kvtest.Store) {
		brief := shop("web01", "10.0.0.1", 1)
		brief.TTL = model.TTL(2 * time.Second)
		register(t, s, brief)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var restarted time.Time
		var events []string
		for r, err := range s.WatchRegistrations(ctx, kvstore.RegistrationFilter{}) {
			switch {
			case errors.Is(err, kvstore.ErrRegistrationsNotCurrent):
				events = append(events, "away")
				restarted = time.Now()
				srv.Start(t)
			case errors.Is(err, context.Canceled):
			case err != nil:
				t.Fatal(err)
			case r.Gone:
				events = append(events, "gone")
				if time.Since(restarted) < 2*time.Second {
					t.Error("it ended too early")
				}
				cancel()
			case r.Node == "":
				srv.Stop()
			default:
				events = append(events, "there")
			}
		}
		if got := strings.Join(events, " "); got != "there away gone" {
			t.Error(got)
		}
	})
}

// TestWatchOfNothing yields at once that there is nothing.
func TestWatchOfNothing(t *testing.T) {
	_, s := kvtest.New(t)
	for r, err := range s.WatchRegistrations(t.Context(), kvstore.RegistrationFilter{}) {
		if err != nil || r.Node != "" || r.Gone {
			t.Errorf("%+v, %v", r, err)
		}
		break
	}
}

func TestRegistrationsThatCannotBe(t *testing.T) {
	_, s := kvtest.New(t)
	for name, change := range map[string]func(*registration.Registration){
		"cluster": func(r *registration.Registration) { r.Cluster = "a.b" }, "service": func(r *registration.Registration) { r.Service = "" },
		"protocol": func(r *registration.Registration) { r.ProtocolName = "*" }, "node": func(r *registration.Registration) { r.Node = ">" },
		"address": func(r *registration.Registration) { r.Address = "10.0.0.*" }, "no address": func(r *registration.Registration) { r.Address = "" },
		"a confusing address": func(r *registration.Registration) { r.Address = "10_0.0.1" }, "port": func(r *registration.Registration) { r.Port = -1 },
	} {
		r := shop("web01", "10.0.0.1", 1)
		change(&r)
		if err := s.Register(t.Context(), r); !errors.Is(err, model.ErrInvalidName) {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Withdraw(t.Context(), r); !errors.Is(err, model.ErrInvalidName) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, f := range map[string]kvstore.RegistrationFilter{"cluster": {Cluster: ">"}, "service": {Service: "a b"}, "address": {Address: "10.*"}} {
		if _, err := s.Registrations(t.Context(), f); !errors.Is(err, model.ErrInvalidName) {
			t.Errorf("%s: %v", name, err)
		}
		for _, err := range s.WatchRegistrations(t.Context(), f) {
			if !errors.Is(err, model.ErrInvalidName) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	lines := shop("web01", "10.0.0.1", 1)
	lines.Annotations["a"] = "x\ny"
	if err := s.Register(t.Context(), lines); !errors.Is(err, registration.ErrInvalid) {
		t.Error(err)
	}
	large := shop("web01", "10.0.0.1", 1)
	large.Annotations["a"] = strings.Repeat("x", 2<<20)
	if err := s.Register(t.Context(), large); !errors.Is(err, model.ErrTooLarge) {
		t.Error(err)
	}
}

func TestWithoutAStreamOfRegistrations(t *testing.T) {
	srv := natstest.Start(t)
	s, err := kvtest.Of(srv.Connect(t), "")
	if err != nil {
		t.Fatal(err)
	}
	_, query := s.Registrations(t.Context(), kvstore.RegistrationFilter{})
	var watch error
	for _, watch = range s.WatchRegistrations(t.Context(), kvstore.RegistrationFilter{}) {
	}
	for name, err := range map[string]error{"register": s.Register(t.Context(), shop("a", "b", 1)), "withdraw": s.Withdraw(t.Context(), shop("a", "b", 1)), "query": query, "watch": watch} {
		if !errors.Is(err, model.ErrNotProvisioned) || !strings.Contains(err.Error(), "muster registration init") {
			t.Errorf("%s: %v", name, err)
		}
	}
	made, err := s.Apply(t.Context(), provision.Options{OnlyRegistrations: true})
	if err != nil || len(made) != 1 || made[0].String() != "create MUSTER_REGISTRATIONS" {
		t.Errorf("%v, %v", made, err)
	}
	register(t, s, shop("a", "b", 1))
}

// TestFleetWithoutRegistrationsWorks uses a fleet that an earlier version provisioned.
func TestFleetWithoutRegistrationsWorks(t *testing.T) {
	srv, s := kvtest.New(t)
	if err := kvtest.Manager(t, srv).DeleteStream("MUSTER_REGISTRATIONS"); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); !errors.Is(err, provision.ErrDiffers) || errors.Is(err, model.ErrNotProvisioned) || !strings.Contains(err.Error(), "MUSTER_REGISTRATIONS is missing") {
		t.Error(err)
	}
}

// TestLiesAreTold has registrations with false claims.
func TestLiesAreTold(t *testing.T) {
	srv, s := kvtest.New(t)
	nc := srv.Connect(t)
	const subject = "muster.registration.prod.http.shop.web01.10_0_0_1.8080"
	valid := func(change func(*registration.Registration)) string {
		r := shop("web01", "10.0.0.1", 1)
		change(&r)
		b, _ := json.Marshal(r)
		return string(b)
	}
	at := func(service, address, port string) string {
		return "muster.registration.prod.http." + service + ".web01." + address + "." + port
	}
	for name, c := range map[string]struct{ data, want, subject string }{
		"no JSON":          {"{", "unexpected EOF", subject},
		"a bracket more":   {valid(func(*registration.Registration) {}) + "}", "unexpected text after the end of the document", subject},
		"two documents":    {valid(func(*registration.Registration) {}) + "{}", "unexpected text after the end of the document", subject},
		"an unknown field": {`{"a": 1}`, `unknown field "a"`, subject},
		"another node":     {valid(func(r *registration.Registration) { r.Node = "web02" }), "its subject would be muster.registration.prod.http.shop.web02.10_0_0_1.8080", subject},
		"another port":     {valid(func(r *registration.Registration) { r.Port = 80 }), "its subject would be", subject},
		"another document": {valid(func(r *registration.Registration) { r.Protocol = "x" }), `the protocol is "x"`, subject},
		"a priority":       {valid(func(r *registration.Registration) { r.Priority = 256 }), "`priority` must be from 1 to 255, not 256", subject},
		"no ttl":           {valid(func(r *registration.Registration) { r.TTL = 0 }), "the ttl is 0s", subject},
		"no host":          {valid(func(r *registration.Registration) { r.Address = "$(reboot)" }), "`address` must be an IP address or a host name", at("shop", "$(reboot)", "8080")},
		"no port":          {valid(func(r *registration.Registration) { r.Port = 65536 }), "`port` must be from 1 to 65535", at("shop", "10_0_0_1", "65536")},
		"two lines":        {valid(func(r *registration.Registration) { r.Annotations = map[string]string{"a": "x\ny"} }), "`annotations` must be words of one line", subject},
		"a terminal":       {valid(func(r *registration.Registration) { r.Annotations = map[string]string{"a": "\x1b[2J"} }), "`annotations` must be words of one line", subject},
		"a reserved word":  {valid(func(r *registration.Registration) { r.Service = "_shop" }), "`service` must not begin with _", at("_shop", "10_0_0_1", "8080")},
		"no name":          {valid(func(r *registration.Registration) { r.Service = "" }), "is not one word", subject},
	} {
		if _, err := nc.Request(c.subject, []byte(c.data), kvtest.Deadline); err != nil {
			t.Fatal(err)
		}
		register(t, s, shop("web02", "10.0.0.2", 1))
		all, err := s.Registrations(t.Context(), kvstore.RegistrationFilter{})
		if !errors.Is(err, registration.ErrInvalid) || !strings.Contains(err.Error(), c.want) || len(all) != 1 {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
	for _, err := range s.WatchRegistrations(t.Context(), kvstore.RegistrationFilter{Node: "web01"}) {
		if !errors.Is(err, registration.ErrInvalid) {
			t.Error(err)
		}
		break
	}
}

// TestNodeRegistersItself uses the permissions of a node; TestNodeCanDoItsJobAndNoMore tests their limits.
func TestNodeRegistersItself(t *testing.T) {
	for name, make := range kvtest.Guards() {
		t.Run(name, func(t *testing.T) {
			g := make(t)
			nc := g.Connect(t, "web01")
			node := kvtest.BindTo(t, nc)
			register(t, node, shop("web01", "10.0.0.1", 1))
			if got := found(t, node, kvstore.RegistrationFilter{Service: "shop"}); got != "prod/http/shop/10.0.0.1:8080@web01" {
				t.Error(got)
			}
			if err := node.Withdraw(t.Context(), shop("web01", "10.0.0.1", 1)); err != nil {
				t.Error(err)
			}
			rollup := nats.NewMsg("muster.registration.prod.http.shop.web01.10_0_0_1.8080")
			rollup.Header.Set("Nats-Rollup", "all")
			register(t, g.Admin, shop("web02", "10.0.0.2", 1))
			if reply, err := nc.RequestMsg(rollup, kvtest.Deadline); err == nil && !strings.Contains(string(reply.Data), "error") {
				t.Errorf("it removed all others: %s", reply.Data)
			}
			if got := found(t, g.Admin, kvstore.RegistrationFilter{Node: "web02"}); got == "" {
				t.Error("the other is gone")
			}
		})
	}
}

// FuzzDecodeRegistration: whatever is accepted agrees with its subject.
func FuzzDecodeRegistration(f *testing.F) {
	valid, err := json.Marshal(shop("web01", "10.0.0.1", 1))
	if err != nil {
		f.Fatal(err)
	}
	const subject = "muster.registration.prod.http.shop.web01.10_0_0_1.8080"
	f.Add(subject, valid)
	f.Add(subject, []byte(`{"protocol":"io.muster.v1.registration","node":"web02"}`))
	f.Add("muster.registration.*.*.*.>", []byte(`{"address":"a b","port":-1}`))
	f.Add("", []byte(`{} {}`))
	names, err := kvstore.NewNames("")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, subject string, data []byte) {
		r, err := kvstore.DecodeRegistration(names, subject, data)
		if err != nil {
			if !errors.Is(err, registration.ErrInvalid) {
				t.Error(err)
			}
			return
		}
		if got := names.Registration(r.Cluster, r.ProtocolName, r.Service, r.Node, r.Address, fmt.Sprint(r.Port)); got != subject || strings.Count(subject, ".") != 7 {
			t.Errorf("%s is taken for %+v", subject, r)
		}
	})
}

// A node can register with any headers: they hide the registrations of no other.
func TestRegistrationWithHeadersOfTheServer(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]nats.Header{
		"end of the batch": {"Status": {"204"}},
		"not found":        {"Status": {"404"}},
		"nobody":           {"Status": {"503"}},
		"origin":           {"Nats-Stream": {"EVIL"}, "Nats-Subject": {"muster.registration.x"}, "Nats-Sequence": {"0"}, "Nats-Time-Stamp": {"-"}, "Nats-Num-Pending": {"0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, s := kvtest.New(t)
			register(t, s, shop("web01", "10.0.0.1", 10))
			nc := srv.Connect(t)
			for _, data := range []string{"", "{}"} {
				m := &nats.Msg{Subject: "muster.registration.prod.http.shop.evil.a." + fmt.Sprint(len(data)+1), Header: header, Data: []byte(data)}
				if _, err := nc.RequestMsg(m, kvtest.Deadline); err != nil {
					t.Fatal(err)
				}
			}
			register(t, s, shop("web02", "10.0.0.2", 20))
			all, err := s.Registrations(t.Context(), kvstore.RegistrationFilter{})
			if len(all) != 2 || all[1].Node != "web02" || !errors.Is(err, registration.ErrInvalid) || !errors.Is(err, kvstore.ErrServerHeaders) {
				t.Errorf("%+v, %v", all, err)
			}
		})
	}
}

// TestWithdrawnStaysWithdrawn: its mark expires no earlier than the registration, below which a server that
// is killed could find it again.
func TestWithdrawnStaysWithdrawn(t *testing.T) {
	t.Parallel()
	srv, s := kvtest.New(t)
	js, err := jetstream.New(srv.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	for ttl, want := range map[time.Duration]string{10 * time.Second: "1m0s", 2 * time.Hour: "2h0m0s", 100 * time.Hour: "24h0m0s", model.Never.Std(): "24h0m0s"} {
		r := shop("web01", "10.0.0.1", 1)
		r.TTL = model.TTL(ttl)
		if err := s.Withdraw(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		stream, err := js.Stream(t.Context(), "MUSTER_REGISTRATIONS")
		if err != nil {
			t.Fatal(err)
		}
		if m, err := stream.GetLastMsgForSubject(t.Context(), "muster.registration.>"); err != nil || m.Header.Get("Nats-TTL") != want {
			t.Errorf("of %s: marked by %+v, %v", ttl, m, err)
		}
	}
}
