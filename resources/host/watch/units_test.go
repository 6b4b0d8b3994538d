package watch_test

import (
	"errors"
	"testing"

	"github.com/musterfleet/muster/resources/host/watch"
)

func TestNoUnits(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/no/such/socket")
	w := watch.NewAt(t.TempDir())
	defer w.Close()
	x, err := w.Arm(watch.Point{Kind: watch.Unit, Name: "web.service"}, nil)
	if x != nil || !errors.Is(err, watch.ErrNone) {
		t.Error(x, err)
	}
}
