package connect_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/musterfleet/muster/kvstore/connect"
)

func TestServersThatAreTooOld(t *testing.T) {
	t.Parallel()
	for version, ok := range map[string]bool{
		"2.9.10": false, "2.10.22": false, "2.10.99": false, "1.4.1": false, "2.2.0-beta": false,
		"2.11.0": true, "2.11.0-RC.1": true, "2.15.2": true, "3.0.0": true, "2.100.1": true, "": true, "dev": true,
	} {
		err := connect.CheckServer(version)
		if (err == nil) != ok {
			t.Errorf("%q: %v", version, err)
		}
		if err != nil && (!errors.Is(err, connect.ErrServer) || !strings.Contains(err.Error(), version+", muster needs 2.11 or later")) {
			t.Errorf("%q: %v", version, err)
		}
	}
}
