package ensurecmd

import (
	"encoding/json"
	"strings"
	"testing"

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
	data, err := encodeRequest(request)
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
