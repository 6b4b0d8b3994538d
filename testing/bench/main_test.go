package bench

import (
	"testing"

	"github.com/musterfleet/muster/testing/actor"
	"github.com/musterfleet/muster/testing/fleetsim"
)

func TestMain(m *testing.M) { actor.Main(m, fleetsim.Roles()) }
