package requests_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/requests"
	"github.com/musterfleet/muster/model"
)

// TestTheSamePreviewIsBounded: a repeated preview has a limited number of receivers; the first and the
// latest sender get the response.
func TestTheSamePreviewIsBounded(t *testing.T) {
	t.Parallel()
	s := requests.New(requests.PreviewOptions{
		Node: "web01", Log: slog.New(slog.DiscardHandler), Untrusted: func(string) {}, Until: time.Until,
		Open: func(_ context.Context, data []byte) ([]byte, error) { return data, nil },
		Plan: func(context.Context, model.PreviewRequest) (*model.Plan, error) { return &model.Plan{}, nil },
	})
	data, err := json.Marshal(model.PreviewRequest{Protocol: model.ProtocolPreviewRequest, ID: "1", Name: "motd", Value: "x", Expires: time.Now().Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan int, 2000)
	const times = 1000
	for i := range times {
		s.Preview(t.Context(), nil, data, func(r model.EnsureResponse) {
			if r.Phase.Final() {
				ended <- i
			} else if r.Phase == "" || r.Error != "" {
				t.Errorf("%+v", r)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	got := map[int]bool{<-ended: true}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for len(ended) > 0 {
		got[<-ended] = true
	}
	if len(got) > 100 || !got[0] || !got[times-1] {
		t.Errorf("%d got the end; the first %v, the last %v", len(got), got[0], got[times-1])
	}
}
