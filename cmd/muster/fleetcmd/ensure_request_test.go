package fleetcmd

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
)

// What a request says is sent as it is: escaped for HTML, a character takes six.
func TestRequestIsNotEscapedForHTML(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("<&>", 1000)
	document := `{"protocol": "` + model.ProtocolEnsureRequest + `", "type": "file", "properties": {"content": "` + content + `"}}`
	request, _, err := manifest.ParseRequest("request.json", []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	data, err := model.EncodeJSON(request)
	if err != nil || len(data) > len(content)+200 {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	var back model.EnsureRequest
	var got map[string]string
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(back.Properties, &got); err != nil || got["content"] != content {
		t.Errorf("got %.80s, %v", back.Properties, err)
	}
}

// TestSummaryOfManyNodes names a few of them: it is one line.
func TestSummaryOfManyNodes(t *testing.T) {
	t.Parallel()
	for count, want := range map[int]string{
		10: "0 nodes answered, no answer from: n00, n01, n02, n03, n04, n05, n06, n07, n08, n09",
		12: "0 nodes answered, no answer from: n00, n01, n02, n03, n04, n05, n06, n07, n08, n09 and 2 more (--json has all)",
	} {
		r := &ask.Ensured{}
		for i := range count {
			r.Missing = append(r.Missing, fmt.Sprintf("n%02d", i))
		}
		if got := AnswerSummary(r, "answered"); got != want {
			t.Errorf("%d: %s", count, got)
		}
	}
}

// TestSummaryNamesWhatHasNotStarted: a node that only acknowledged a request does not work on
// it yet.
func TestSummaryNamesWhatHasNotStarted(t *testing.T) {
	t.Parallel()
	r := &ask.Ensured{
		Answers: []model.EnsureResponse{
			{Node: "db01", Phase: model.EnsureAcknowledged}, {Node: "web01", Phase: model.EnsureRunning}, {Node: "web02", Phase: model.EnsureDone},
		},
		Unfinished: []string{"db01", "web01"},
	}
	const want = "1 node answered, still working: web01, accepted, not started: db01 (they continue; for the results see: muster fleet reports --kind ensure)"
	if got := AnswerSummary(r, "answered") + ensureResults(r); got != want {
		t.Errorf("%s", got)
	}
}
