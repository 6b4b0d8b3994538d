package fleet_test

import (
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

func TestPauseChange(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	own, group := "node.web01.pause", "group.web.pause"
	begin := fleet.PauseChange{Key: own, Pause: &model.Pause{At: at, Until: at.Add(time.Hour)}}
	endless := fleet.PauseChange{Key: own, Pause: &model.Pause{At: at}}
	end := fleet.PauseChange{Key: own}
	for name, c := range map[string]struct {
		change fleet.PauseChange
		paused *model.Paused
		want   bool
	}{
		"not paused":                  {begin, nil, false},
		"paused by it":                {begin, &model.Paused{From: own, At: at}, true},
		"paused by an earlier one":    {begin, &model.Paused{From: own, At: at.Add(-time.Minute)}, false},
		"by another that ends later":  {begin, &model.Paused{From: group, Until: at.Add(2 * time.Hour)}, true},
		"by another that ends sooner": {begin, &model.Paused{From: group, Until: at.Add(time.Minute)}, false},
		"by another without end":      {endless, &model.Paused{From: group}, true},
		"without end, by one with":    {endless, &model.Paused{From: group, Until: at.Add(time.Minute)}, false},
		"resumed":                     {end, nil, true},
		"still paused":                {end, &model.Paused{From: own}, false},
		"resumed, paused by a group":  {end, &model.Paused{From: group}, true},
	} {
		if got := c.change.IsObeyed(model.Node{NodeState: model.NodeState{Paused: c.paused}}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for message, want := range map[string]string{
		"":                                       "",
		"rejected: node.web01.pause: not signed": "not signed",
		"rejected: node.web01.labels: not valid": "",
	} {
		if got := begin.Refusal(model.Node{NodeState: model.NodeState{Message: message}}); got != want {
			t.Errorf("%q: %q", message, got)
		}
	}
	for rejected, want := range map[string]string{own: "not signed", group: ""} {
		state := model.NodeState{Message: "rejected: " + own + ": the message is for people", RejectedControl: map[string]string{rejected: "not signed"}}
		if got := begin.Refusal(model.Node{NodeState: state}); got != want {
			t.Errorf("rejects %s: %q", rejected, got)
		}
	}
}
