package chaos

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// scale is how much a round does.
type scale struct{ whole bool }

// of returns the number for this scale.
func (s scale) of(short, whole int) int {
	if s.whole {
		return whole
	}

	return short
}

// fault is what happens to a world.
type fault struct {
	name string
	run  func(t *testing.T, r *rand.Rand, s scale)
}

// faults are those that any user can have.
func faults() []fault {
	return []fault{
		{"agent killed", agentKilled},
		{"server killed", serverKilled},
		{"leader of three killed", leaderKilled},
		{"one direction lost", oneDirectionLost},
		{"state directory read-only", stateReadOnly},
		{"events overflow", eventsOverflow},
		{"directory away and back", directoryAway},
		{"a thousand drifts a second", manyDrifts},
		{"manifest that panics a type", typePanics},
		{"manifest that never ends", neverEnds},
		{"manifest that deletes the state directory", stateDeleted},
		{"ten thousand changes of a key", manyChanges},
		{"clock set by an hour", clockSet},
	}
}

// TestChaos breaks everything, in rounds.
func TestChaos(t *testing.T) { inRounds(t, faults()) }

// inRounds runs all faults in each round, in a world each.
func inRounds(t *testing.T, all []fault) {
	rounds := number(t, "MUSTER_CHAOS", 0)
	seed := number(t, "MUSTER_CHAOS_SEED", time.Now().UnixNano()%1e9)
	for round := range max(rounds, 1) {
		passed := t.Run(fmt.Sprintf("seed=%d", seed+round), func(t *testing.T) {
			for _, f := range all {
				t.Run(f.name, func(t *testing.T) {
					t.Parallel()
					name := fnv.New64()
					_, _ = name.Write([]byte(f.name))
					f.run(t, rand.New(rand.NewPCG(uint64(seed+round), name.Sum64())), scale{rounds > 0})
				})
			}
		})
		if !passed {
			t.Fatalf("round %d of %d failed: MUSTER_CHAOS_SEED=%d has its choices again", round+1, max(rounds, 1), seed+round)
		}
	}
}

// number returns the number in a variable of the environment.
func number(t *testing.T, name string, otherwise int64) int64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}

	return n
}
