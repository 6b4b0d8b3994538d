package reports_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/musterfleet/muster/kvstore/reports"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestMessages: a part of the stream, with the sequences and times of the server; what cannot be
// read ends nothing.
func TestMessages(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	stream := reports.New(store.Store)
	if m, err := stream.NewestMessage(t.Context()); err != nil || m.Sequence != 0 {
		t.Errorf("of none: %+v, %v", m, err)
	}
	if kept, err := stream.Kept(t.Context()); err != nil || !kept.First.IsZero() || kept.PerSubject != 240 {
		t.Errorf("kept of none: %+v, %v", kept, err)
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
		if err := srv.Connect(t).Publish(store.Names().Report("web01", model.KindNode, "started"), []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	kvtest.Eventually(t, "all are stored", func() (bool, string) {
		m, err := stream.NewestMessage(t.Context())
		return err == nil && m.Sequence == 5, fmt.Sprint(m.Sequence, err)
	})
	if kept, err := stream.Kept(t.Context()); err != nil || kept.First.Sub(began).Abs() > time.Hour {
		t.Errorf("kept: %+v, %v", kept, err)
	}
	for want, r := range map[string]reports.Range{
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
			if got = append(got, word); errors.Is(m.Invalid, reports.ErrInvalidEvent) == (len(m.Reports) == 1) || m.Size == 0 || m.Stored.Sub(began).Abs() > time.Hour {
				t.Errorf("%+v", m)
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%+v: %v, want %s", r, got, want)
		}
	}
}
