package engine

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
)

func TestLogShowsNoSecret(t *testing.T) {
	var secrets secretSet
	secrets.add(model.NewSecret("hunter22"), model.NewSecret("hunter22"))
	var out strings.Builder
	log := secrets.log(slog.New(slog.NewTextHandler(&out, nil))).With("of", "hunter22").WithGroup("g")
	log.Info("with hunter22", "text", "hunter22", "any", []string{"hunter22"}, slog.Group("inner", "text", "aHVudGVyMjI=", "number", 1))
	if got := out.String(); strings.Contains(got, "hunter22") || strings.Contains(got, "HVudGVy") || strings.Count(got, model.Redacted) != 5 || !strings.Contains(got, "g.inner.number=1") {
		t.Error(got)
	}
}

// TestDocument checks that redacted JSON is valid JSON, also if a secret contains JSON syntax.
func TestDocument(t *testing.T) {
	var secrets secretSet
	for _, secret := range []string{"hunter22", `"a":"b`, "quo\"te\n"} {
		secrets.add(model.NewSecret(secret))
	}
	for in, want := range map[string]string{
		``:                              ``,
		`{"k":"x hunter22 y","n":1}`:    `{"k":"x [redacted] y","n":1}`,
		`{"k":"quo\"te\n."}`:            `{"k":"[redacted]."}`,
		`{"a":"b"}`:                     `"[redacted]"`,
		`{"k":"{\"j\":\"quo\\\"te\"}"}`: `{"k":"{\"j\":\"[redacted]\"}"}`,
	} {
		if got := string(secrets.document(json.RawMessage(in))); got != want {
			t.Errorf("%s becomes %s", in, got)
		}
	}
}

// TestErrorOfALongValue checks that long values in errors are shortened.
func TestErrorOfALongValue(t *testing.T) {
	var secrets secretSet
	got := secrets.Error(fmt.Errorf("could not lookup user %s", strings.Repeat("a", 3000)), false)
	if want := "could not lookup user " + strings.Repeat("a", 200) + "… (2800 more characters)"; got != want {
		t.Errorf("it is %s", got)
	}
}
