package model_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
)

const validCancel = `{"protocol":"io.muster.v1.cancel.request","request":"one","by":"ann@desk","kill":true,"expires":"2026-01-31T11:29:48Z"}`

func TestDecodeCancelRequest(t *testing.T) {
	t.Parallel()
	with := func(old, replaced string) string { return strings.Replace(validCancel, old, replaced, 1) }
	for name, c := range map[string]struct{ document, problem string }{
		"valid":              {validCancel, ""},
		"by nobody":          {with(`"by":"ann@desk",`, ""), ""},
		"another protocol":   {with("cancel.request", "run.request"), "its protocol is not io.muster.v1.cancel.request"},
		"no request":         {with(`"request":"one",`, ""), "it must name the id of a request"},
		"a request too long": {with("one", strings.Repeat("x", model.MaxRequestID+1)), "one line of at most 128 bytes"},
		"an id of two lines": {with("one", `one\ntwo`), "it must name the id of a request"},
		"by somebody evil":   {with("ann@desk", `\u001b[2J`), "by must be one line"},
		"no end":             {with(`,"expires":"2026-01-31T11:29:48Z"`, ""), "it has no time after which it expires"},
		"too large":          {with("ann@desk", strings.Repeat("x", model.MaxCancelRequest)), "at most 4096 are read"},
		"an unknown field":   {with(`"kill"`, `"colour":"red","kill"`), "colour"},
		"no JSON":            {"now", "invalid"},
	} {
		got, err := model.DecodeCancelRequest([]byte(c.document))
		switch {
		case c.problem == "" && (err != nil || got.Request != "one" || !got.Kill):
			t.Errorf("%s: %+v, %v", name, got, err)
		case c.problem != "" && (!errors.Is(err, model.ErrInvalidCancel) || !strings.Contains(err.Error(), c.problem)):
			t.Errorf("%s: %v, want %q", name, err, c.problem)
		}
	}
	if got := (model.CancelRequest{By: "ann@desk"}).String() + ", " + (model.CancelRequest{}).String(); got != "cancelled by ann@desk, cancelled" {
		t.Error(got)
	}
}

// TestIsCancelRequest: a request of a resource is none, whatever it says within.
func TestIsCancelRequest(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]bool{
		validCancel: true,
		`{"protocol":"io.muster.v1.cancel.request"}`: true,
		`{"protocol":"io.choria.ccm.v1.resource.ensure.request","properties":{"protocol":"io.muster.v1.cancel.request"}}`: false,
		"protocol: io.muster.v1.cancel.request\n": false,
		`{"protocol":"io.muster.v1.cancel.request","by":"` + strings.Repeat("x", model.MaxCancelRequest) + `"}`: false,
		"": false,
	} {
		if got := model.IsCancelRequest([]byte(document)); got != want {
			t.Errorf("%.120q is a cancel: %v", document, got)
		}
	}
}

func FuzzDecodeCancelRequest(f *testing.F) {
	f.Add([]byte(validCancel))
	f.Add([]byte(`{"protocol":"io.muster.v1.cancel.request","request":"\u001b[2J","expires":"2026-01-31T11:29:48Z"}`))
	f.Add([]byte(`{"protocol":"io.muster.v1.cancel.request","REQUEST":"a","request":"b"}`))
	f.Add([]byte(`{"protocol":["io.muster.v1.cancel.request"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := model.DecodeCancelRequest(data)
		if !model.IsRequestID(c.Request) {
			t.Errorf("the id is %q", c.Request)
		}
		if err != nil {
			return
		}
		if !model.IsCancelRequest(data) || strings.ContainsAny(c.String(), "\n\x1b") {
			t.Errorf("%q is %q", data, c)
		}
		again, err := json.Marshal(c)
		if err != nil {
			t.Fatalf("%+v cannot be encoded: %v", c, err)
		}
		if _, err := model.DecodeCancelRequest(again); err != nil && len(again) <= model.MaxCancelRequest {
			t.Errorf("%s is not read again: %v", again, err)
		}
	})
}
