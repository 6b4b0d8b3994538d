package kvstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/testing/kvtest"
)

// floodOf stores many valid registrations of a node, and as many that are none.
func floodOf(t *testing.T, nc *nats.Conn, node string, count int) {
	t.Helper()
	for i := range count {
		r := shop(node, "10.0.0.1", 1)
		r.Port = 1 + i
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		subject := fmt.Sprintf("muster.registration.prod.http.shop.%s.10_0_0_1.%d", node, r.Port)
		for _, m := range []*nats.Msg{{Subject: subject, Data: data}, {Subject: strings.Replace(subject, "shop", "mail", 1), Data: []byte("garbage")}} {
			if err := nc.PublishMsg(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := nc.Request("muster.registration.prod.http.last."+node+".10_0_0_1.1", []byte("garbage"), kvtest.Deadline); err != nil {
		t.Fatal(err)
	}
}

// A node that registers without end is truncated and named once, and hides no others.
func TestAFloodOfRegistrationsHidesNobody(t *testing.T) {
	t.Parallel()
	srv, s := kvtest.New(t)
	register(t, s, shop("web01", "10.0.0.1", 1))
	floodOf(t, srv.Connect(t), "evil", 2000)
	register(t, s, shop("web02", "10.0.0.2", 1))
	for range 2 {
		all, err := s.Registrations(t.Context(), kvstore.RegistrationFilter{})
		of := map[string]int{}
		for _, r := range all {
			of[r.Node]++
		}
		if of["web01"] != 1 || of["web02"] != 1 || of["evil"] != kvstore.MaxRegistrationsPerNode {
			t.Errorf("registrations: %v", of)
		}
		if !errors.Is(err, registration.ErrInvalid) || strings.Count(err.Error(), "\n") > 10 ||
			!strings.Contains(err.Error(), "node evil registers more than 256 services, the others are left out") || !strings.Contains(err.Error(), "further ones of node evil are not reported for a while") {
			t.Errorf("error = %.2000v", err)
		}
	}
	named, err := s.FloodingRegistrations(t.Context())
	if err != nil || len(named) != 1 || named["evil"] != "flooding: 4001 registrations, readers take 256" {
		t.Errorf("flooding: %v, %v", named, err)
	}
}

// A watch also limits the registrations per node that it stores and reports.
func TestAWatchIsNotFlooded(t *testing.T) {
	t.Parallel()
	srv, s := kvtest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	of, problems := map[string]int{}, 0
	for r, err := range s.WatchRegistrations(ctx, kvstore.RegistrationFilter{}) {
		switch {
		case errors.Is(err, context.Canceled):
		case err != nil:
			problems++
		case r.Node == "":
			floodOf(t, srv.Connect(t), "evil", 1000)
			register(t, s, shop("web01", "10.0.0.1", 1))
		default:
			of[r.Node]++
		}
		if of["web01"] > 0 {
			cancel()
		}
	}
	if of["evil"] != kvstore.MaxRegistrationsPerNode || problems > 10 || problems == 0 {
		t.Errorf("%v, %d problems", of, problems)
	}
}

// The server limits the size of a registration, the stream their total. A dropped registration returns with
// its renewal.
func TestRegistrationsAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	srv, s := kvtest.NewWith(t, provision.Options{RegistrationBytes: 4 << 20})
	register(t, s, shop("web01", "10.0.0.1", 1))
	nc := srv.Connect(t)
	for i := range 300 {
		subject := fmt.Sprintf("muster.registration.prod.http.shop.evil.10_0_0_1.%d", i)
		reply, err := nc.Request(subject, make([]byte, 31<<10), kvtest.Deadline)
		if err != nil || strings.Contains(string(reply.Data), "error") {
			t.Fatalf("%s, %v", reply.Data, err)
		}
	}
	if reply, err := nc.Request("muster.registration.prod.http.shop.evil.10_0_0_1.1", make([]byte, 40<<10), kvtest.Deadline); err != nil || !strings.Contains(string(reply.Data), "message size exceeds maximum allowed") {
		t.Errorf("40 KiB: %s, %v", reply.Data, err)
	}
	info, err := s.JetStream().Stream(t.Context(), "MUSTER_REGISTRATIONS")
	if err != nil {
		t.Fatal(err)
	}
	if state := info.CachedInfo().State; state.Bytes > 4<<20 {
		t.Errorf("%d bytes", state.Bytes)
	}
	register(t, s, shop("web01", "10.0.0.1", 1))
	if all, _ := s.Registrations(t.Context(), kvstore.RegistrationFilter{Node: "web01"}); len(all) != 1 {
		t.Errorf("%v", all)
	}
	large := shop("web02", "10.0.0.2", 1)
	large.Annotations = map[string]string{"a": strings.Repeat("<", 16000)}
	if err := s.Register(t.Context(), large); !errors.Is(err, model.ErrTooLarge) || !strings.Contains(err.Error(), "the stream MUSTER_REGISTRATIONS accepts 31744") {
		t.Errorf("large: %v", err)
	}
}

// TestLargeRegistrationsAreBounded: the bytes per node are limited for single reads and for watches.
func TestLargeRegistrationsAreBounded(t *testing.T) {
	t.Parallel()
	srv, s := kvtest.New(t)
	nc := srv.Connect(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	publish := func(port int) {
		r := shop("evil", "10.0.0.1", 1)
		r.Port, r.Annotations = port, map[string]string{"a": strings.Repeat("x", 16000)}
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := nc.Publish(fmt.Sprintf("muster.registration.prod.http.shop.evil.10_0_0_1.%d", port), data); err != nil {
			t.Fatal(err)
		}
	}
	const want = "node evil registers more than 262144 bytes, the others are left out"
	watched, problems := map[string]int{}, 0
	for r, err := range s.WatchRegistrations(ctx, kvstore.RegistrationFilter{}) {
		switch {
		case errors.Is(err, context.Canceled):
		case err != nil:
			problems++
			if !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
		case r.Node == "":
			for i := range 60 {
				publish(1 + i%30)
			}
			if err := nc.Flush(); err != nil {
				t.Fatal(err)
			}
			register(t, s, shop("web01", "10.0.0.1", 1))
		default:
			watched[fmt.Sprint(r.Node, r.Port)]++
		}
		if watched["web018080"] > 0 {
			cancel()
		}
	}
	if len(watched) != 17 || watched["evil1"] == 0 || problems == 0 || problems > 10 {
		t.Errorf("watched: %v, %d problems", watched, problems)
	}
	all, err := s.Registrations(t.Context(), kvstore.RegistrationFilter{})
	if len(all) != 17 || !errors.Is(err, registration.ErrInvalid) || !strings.Contains(err.Error(), want) {
		t.Errorf("read: %d, %v", len(all), err)
	}
	if named, err := s.FloodingRegistrations(t.Context()); err != nil || len(named) != 0 {
		t.Errorf("%v, %v", named, err)
	}
}

// TestOneOfManyRegistrationsGrows: a node has as many registrations as count. One more, and one that grows, displace the last
// ones by subject.
func TestOneOfManyRegistrationsGrows(t *testing.T) {
	t.Parallel()
	srv, s := kvtest.New(t)
	nc := srv.Connect(t)
	publish := func(port, size int) {
		t.Helper()
		r := shop("evil", "10.0.0.1", 1)
		r.Port, r.Annotations = port, map[string]string{"a": strings.Repeat("x", size)}
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Request(fmt.Sprintf("muster.registration.prod.http.shop.evil.10_0_0_1.%d", port), data, kvtest.Deadline); err != nil {
			t.Fatal(err)
		}
	}
	for port := range kvstore.MaxRegistrationsPerNode {
		publish(1+port, 800)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	known, problems := map[int]bool{}, []string{}
	for r, err := range s.WatchRegistrations(ctx, kvstore.RegistrationFilter{}) {
		switch {
		case errors.Is(err, context.Canceled):
		case err != nil:
			problems = append(problems, err.Error())
		case r.Node == "evil" && r.Gone:
			delete(known, r.Port)
		case r.Node == "evil":
			known[r.Port] = true
		case r.Node == "":
			publish(1+kvstore.MaxRegistrationsPerNode, 1)
			publish(1, 15000)
			register(t, s, shop("web01", "10.0.0.1", 1))
		default:
			cancel()
		}
	}
	const is = "invalid registration: node evil registers more than "
	if want := []string{is + "256 services, the others are left out", is + "262144 bytes, the others are left out"}; !known[1] || known[99] || len(known) < 200 || !slices.Equal(problems, want) {
		t.Errorf("%d are known, %q, want %q", len(known), problems, want)
	}
}
