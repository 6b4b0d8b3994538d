package model_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
)

// validRun is a run request; %NAMES% are the manifests that it names.
const validRun = `{"protocol":"io.muster.v1.run.request","id":"one","expires":"2026-01-31T11:29:48Z","manifests":[%NAMES%]}`

func TestDecodeRunRequest(t *testing.T) {
	t.Parallel()
	with := func(names string) string { return strings.Replace(validRun, "%NAMES%", names, 1) }
	for name, c := range map[string]struct{ document, problem string }{
		"all manifests":      {with(""), ""},
		"two of them":        {with(`"motd","web"`), ""},
		"another protocol":   {strings.Replace(with(""), "run.request", "ensure", 1), "its protocol is not io.muster.v1.run.request"},
		"no id":              {strings.Replace(with(""), `"id":"one",`, "", 1), ""},
		"an id of two lines": {strings.Replace(with(""), `"one"`, `"one\ntwo"`, 1), "its id must be one line of at most"},
		"no end":             {strings.Replace(with(""), `"expires":"2026-01-31T11:29:48Z",`, "", 1), "it has no time after which it expires"},
		"a key for a name":   {with(`"node.web01.motd"`), "a manifest's name has letters, digits, - and _ only"},
		"101 names":          {with(strings.TrimSuffix(strings.Repeat(`"m",`, 101), ",")), "it names 101 manifests, at most 100 are taken"},
		"too large":          {with(`"` + strings.Repeat("m", model.MaxRunRequest) + `"`), "at most 16384 are read"},
		"an unknown field":   {strings.Replace(with(""), `"id"`, `"colour":"red","id"`, 1), "colour"},
		"no JSON":            {"now", "invalid"},
	} {
		_, err := model.DecodeRunRequest([]byte(c.document))
		switch {
		case c.problem == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.problem != "" && (!errors.Is(err, model.ErrInvalidRunRequest) || !strings.Contains(err.Error(), c.problem)):
			t.Errorf("%s: %v, want %q", name, err, c.problem)
		}
	}
}

func FuzzDecodeRunRequest(f *testing.F) {
	f.Add([]byte(strings.Replace(validRun, "%NAMES%", `"motd"`, 1)))
	f.Add([]byte(`{"protocol":"io.muster.v1.run.request","id":"\u001b[2J"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := model.DecodeRunRequest(data)
		if r.ID != "" && !model.IsRequestID(r.ID) {
			t.Errorf("the id is %q", r.ID)
		}
		if err != nil {
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("%+v cannot be encoded: %v", r, err)
		}
		if _, err := model.DecodeRunRequest(again); err != nil && len(again) <= model.MaxRunRequest {
			t.Errorf("%s is not read again: %v", again, err)
		}
	})
}
