package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/natstest"
)

// TestInitWithLittleRoom: the error of an account that has too little room says
// what to do, and that helps.
func TestInitWithLittleRoom(t *testing.T) {
	for limit, c := range map[string]struct{ remedy, flag, value string }{
		"max_file: 64MB":                 {"--report-size", "--report-size", "16MiB"},
		"max_file: 64GB, max_streams: 3": {"max_streams", "", ""},
		"max_mem: 64MB, max_file: 0":     {"max_file", "", ""},
	} {
		t.Run(limit, func(t *testing.T) {
			server := natstest.Start(t, natstest.WithConfig("accounts: {A: {jetstream: {"+limit+"}, users: [{user: a, password: a}]}}, no_auth_user: a"))
			state := filepath.Join(t.TempDir(), "state")
			code, text := start(t, state, "--server", server.URL(), "fleet", "init", "--yes").wait()
			if code != 1 || !strings.Contains(text, c.remedy) {
				t.Fatalf("exit code %d, %q is missing in\n%s", code, c.remedy, text)
			}
			if c.flag == "" {
				return
			}
			muster(t, state, "--server", server.URL(), "fleet", "init", "--yes", c.flag, c.value)
		})
	}
}
