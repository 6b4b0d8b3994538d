package document_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/testing/signtest"
)

const key = "group.web.motd"

// envelope returns a signed assignment of a content.
func envelope(t *testing.T, content string) []byte {
	t.Helper()
	now := time.Now()

	return signtest.Sign(t, signed.Statement{Fleet: "muster", Action: signed.Assign, Target: key, Issued: now, Expires: now.Add(time.Hour), Content: content}, signtest.Signer(t))
}

func TestDigest(t *testing.T) {
	t.Parallel()
	const manifest = "muster: {}\n"
	bundle := model.DigestOf([]byte("bundle"))
	const broken = "protocol: io.muster.v1.assignment\nnope: 1\n"
	for name, c := range map[string]struct{ value, want string }{
		"bare":            {manifest, model.DigestOf([]byte(manifest))},
		"document":        {"protocol: io.muster.v1.assignment\nmanifest: |\n  " + manifest, model.DigestOf([]byte(manifest))},
		"bundle":          {"protocol: io.muster.v1.assignment\nbundle: " + bundle + "\n", bundle},
		"signed":          {string(envelope(t, manifest)), model.DigestOf([]byte(manifest))},
		"rejected":        {broken, model.DigestOf([]byte(broken))},
		"signed rejected": {string(envelope(t, broken)), model.DigestOf([]byte(broken))},
		"broken envelope": {`{"payload": 1}`, model.DigestOf([]byte(`{"payload": 1}`))},
	} {
		if got := document.AssignedDigest(key, []byte(c.value)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestTermsAreThoseOfTheDocument checks the terms with and without a signature. A rejected value
// only has its signature.
func TestTermsAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	const assignment = "protocol: io.muster.v1.assignment\nmanifest: |\n  muster: {}\nnoop: true\npriority: 3\nexpires: 2026-01-02T03:04:05Z\n"
	want := model.Terms{Noop: true, Priority: 3, Expires: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	signed := want
	signed.Signed = true
	for name, c := range map[string]struct {
		value string
		want  *model.Terms
	}{
		"bare":            {"muster: {}\n", nil},
		"no terms":        {"protocol: io.muster.v1.assignment\nmanifest: |\n  muster: {}\n", nil},
		"terms":           {assignment, &want},
		"signed":          {string(envelope(t, assignment)), &signed},
		"signed bare":     {string(envelope(t, "muster: {}\n")), &model.Terms{Signed: true}},
		"rejected":        {assignment + "nope: 1\n", nil},
		"signed rejected": {string(envelope(t, assignment+"nope: 1\n")), &model.Terms{Signed: true}},
	} {
		if _, got := document.AssignedSummary(key, []byte(c.value)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestAnEnvelopeHoldsNoOther checks that nested envelopes are rejected.
func TestAnEnvelopeHoldsNoOther(t *testing.T) {
	t.Parallel()
	inner := envelope(t, "muster: {}\n")
	for name, decode := range map[string]func() (document.Assigned, model.Problems){
		"value": func() (document.Assigned, model.Problems) {
			return document.DecodeAssigned(key, envelope(t, string(inner)))
		},
		"content": func() (document.Assigned, model.Problems) { return document.DecodeAssignedContent(key, inner) },
	} {
		v, problems := decode()
		if problems == nil || !strings.Contains(problems.Error(), "without another envelope inside") || v.Manifest != "" || string(v.Content) != string(inner) {
			t.Errorf("%s: %+v, %v", name, v, problems)
		}
	}
}
