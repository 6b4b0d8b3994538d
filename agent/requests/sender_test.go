package requests

import (
	"context"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// TestResponsesNameTheSender: all responses name the first sender, also responses to a repeat by
// another sender and to a rejected request.
func TestResponsesNameTheSender(t *testing.T) {
	t.Parallel()
	s, reported := accepting(t, func(_ context.Context, data []byte, _ signed.Action) (desired.Opened, error) {
		return desired.Opened{Request: data}, nil
	})
	anna, bob := &model.Sender{By: "anna@desk", Nodes: 2}, &model.Sender{By: "bob@desk"}
	var got []model.EnsureResponse
	note := func(r model.EnsureResponse) { got = append(got, r) }
	run := encode(model.RunRequest{Protocol: model.ProtocolRunRequest, ID: "r1", Expires: time.Now().Add(time.Hour)})
	s.Run(t.Context(), anna, run, note)
	s.Run(t.Context(), bob, run, note)
	s.Ensure(t.Context(), anna, []byte(`{"protocol": "`+model.ProtocolEnsureRequest+`", "id": "e1", "type": "file", "properties": {}}`), note)
	s.Ensure(t.Context(), anna, []byte(`{"protocol": "`+model.ProtocolEnsureRequest+`", "id": "e2", "type": 5}`), note)
	if err := s.Command(t.Context(), anna, "c1", []byte("{}")); err != nil {
		t.Error(err)
	}
	if len(got) != 4 || len(*reported) != 2 {
		t.Fatalf("answered %+v, reported %+v", got, *reported)
	}
	for _, r := range append(got, *reported...) {
		if r.Sender == nil || *r.Sender != *anna {
			t.Errorf("%s is %s, from %+v", r.ID, r.Phase, r.Sender)
		}
	}
	for _, q := range s.store.unfinished() { // as after a restart
		if r := s.responder.response(q); r.Sender == nil || *r.Sender != *anna {
			t.Errorf("%s is from %+v after a restart", r.ID, r.Sender)
		}
	}
}
