package view

import (
	"fmt"
	"testing"
	"time"
)

// TestOneNodeBringsInFew: the names of one node take no room from others, and ended problems stop counting.
func TestOneNodeBringsInFew(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := newAttentionCounts(time.Hour)
	add := func(node, resource string, at time.Time) {
		r.Add(node, at, attention{Kind: kindDrifting, Manifest: "motd", Resource: resource, Text: "of " + node})
	}
	for i := range 5000 {
		add("flood", fmt.Sprint("file#/", i), now)
	}
	for i := range 2000 {
		add(fmt.Sprint("web", i), "file#/etc/motd", now)
	}
	top := r.Top("", nil, now)
	if len(top.Drifting) != 20 || len(top.Failing)+len(top.Flapping) != 0 {
		t.Fatalf("%+v", top)
	}
	if first := top.Drifting[0]; first.Resource != "file#/etc/motd" || first.Count != 2000 || first.Nodes != 2000 || first.Text != "of web1999" {
		t.Errorf("first %+v", first)
	}
	if kept := len(r.counts[kindDrifting]); kept != 51 {
		t.Errorf("%d resources are kept", kept)
	}
	if other := r.Top("other", nil, now).Drifting; len(other) != 0 {
		t.Errorf("of another manifest %+v", other)
	}
	if later := r.Top("", nil, now.Add(2*time.Hour)).Drifting; len(later) != 0 {
		t.Errorf("later %+v", later)
	}
	add("web1", "file#/new", now.Add(2*time.Hour))
	if kept := len(r.counts[kindDrifting]); kept != 1 {
		t.Errorf("%d resources are kept later", kept)
	}
}
