package exec_test

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/musterfleet/muster/testing/typetest"
)

// A command that floods is logged with its beginning and its end.
func TestLogOutputIsBounded(t *testing.T) {
	var got []string
	env := testEnv(t)
	env.Log = slog.New(infos{&got})
	const command = "echo first; yes | head -n 100000; echo last; echo only >&2"
	_, _, err := apply(t.Context(), t, env, decode(t, typetest.Properties{"name": command, "provider": "shell", "logoutput": true}), false)
	check(t, err)
	// 64 KiB of lines that cost 65 bytes and a few more, at each end.
	if len(got) > 2100 || len(got) < 1900 {
		t.Fatalf("%d lines were logged", len(got))
	}
	for _, want := range []string{"first", "y", "last", "only"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q was not logged", want)
		}
	}
	at := slices.Index(got, "… 97986 lines dropped …")
	if at < 0 || got[0] != "first" && got[0] != "only" || slices.Index(got, "last") < at {
		t.Errorf("it is not said what was dropped: %q", got[900:1100])
	}
}
