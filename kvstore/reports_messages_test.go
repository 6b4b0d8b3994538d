package kvstore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestMessages: a part of the stream, with the sequences and times of the server; what cannot be
// read ends nothing.
func TestMessages(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	stream := kvstore.NewReports(store.Store)
	if m, err := stream.NewestMessage(t.Context()); err != nil || m.Sequence != 0 {
		t.Errorf("of none: %+v, %v", m, err)
	}
	began := time.Now()
	for i, node := range []string{"web01", "web02", "web01"} {
		r := kvtest.Outgoing(node, model.KindRun, model.OutcomeStable, uint64(i+1))
		r.Time = began.Add(48 * time.Hour) // by the clock of the node
		if err := kvtest.Publish(t.Context(), store, r); err != nil {
			t.Fatal(err)
		}
	}
	for _, data := range []string{"garbage", `{"specversion":"1.0","id":"1","type":"a","source":"muster/node/web01","time":"2026-01-02T03:04:05Z","datacontenttype":"application/json"}`} {
		if err := srv.Connect(t).Publish(store.Names.Report("web01", model.KindNode, "started"), []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	kvtest.Eventually(t, "all are stored", func() (bool, string) {
		m, err := stream.NewestMessage(t.Context())
		return err == nil && m.Sequence == 5, fmt.Sprint(m.Sequence, err)
	})
	for want, r := range map[string]model.ReportRange{
		"[1 2 3 4! 5!]": {},
		"[3 4! 5!]":     {After: 2},
		"[2]":           {Node: "web02"},
		"[2 3]":         {Kind: model.KindRun, Newest: true},
		"[]":            {Since: began.Add(time.Hour)},
	} {
		got := []string{}
		for m, err := range stream.Messages(t.Context(), r) {
			if err != nil {
				t.Fatal(err)
			}
			word := fmt.Sprint(m.Sequence)
			if m.Invalid != nil {
				word += "!"
			}
			if got = append(got, word); errors.Is(m.Invalid, kvstore.ErrInvalidEvent) == (len(m.Reports) == 1) || m.Size == 0 || m.Stored.Sub(began).Abs() > time.Hour {
				t.Errorf("%+v", m)
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%+v: %v, want %s", r, got, want)
		}
	}
}

// TestBounds: what the stream keeps, and whether it dropped anything.
func TestBounds(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	stream := kvstore.NewReports(store.Store)
	if b, err := stream.Bounds(t.Context()); err != nil || !b.Oldest.IsZero() || b.Dropped || b.PerSubject != 240 {
		t.Errorf("empty: %+v, %v", b, err)
	}
	for i := range 2 {
		if err := kvtest.Publish(t.Context(), store, kvtest.Outgoing("web01", model.KindRun, "stable", uint64(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	first, err := stream.Bounds(t.Context())
	if err != nil || time.Since(first.Oldest).Abs() > time.Hour || first.Dropped {
		t.Errorf("two: %+v, %v", first, err)
	}
	js, err := jetstream.New(srv.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), "MUSTER_REPORTS")
	if err == nil {
		err = s.Purge(t.Context(), jetstream.WithPurgeKeep(1))
	}
	if err != nil {
		t.Fatal(err)
	}
	if b, err := stream.Bounds(t.Context()); err != nil || !b.Dropped || !b.Oldest.After(first.Oldest) {
		t.Errorf("one was dropped: %+v, %v", b, err)
	}
}
