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

// scaled returns how much of something is done: less where no rounds are asked for. What
// rounds repeat is not repeated within one.
func scaled(t *testing.T, short, whole int) int {
	t.Helper()
	if number(t, "MUSTER_CHAOS", 0) > 0 {
		return whole
	}

	return short
}

// fault is what happens to a world.
type fault struct {
	name string
	run  func(t *testing.T, r *rand.Rand)
	// whole marks a run that the short form omits.
	whole bool
}

// faults are those that any user can have.
func faults() []fault {
	return []fault{
		{name: "agent killed", run: agentKilled},
		{name: "server killed", run: serverKilled},
		{name: "leader of three killed", run: leaderKilled, whole: true}, // three servers elect for seconds
		{name: "one direction lost", run: oneDirectionLost},
		{name: "state directory read-only", run: stateReadOnly},
		{name: "events overflow", run: eventsOverflow},
		{name: "directory away and back", run: directoryAway},
		{name: "a thousand drifts a second", run: manyDrifts},
		{name: "manifest that panics a type", run: typePanics},
		{name: "manifest that never ends", run: neverEnds},
		{name: "manifest that deletes the state directory", run: stateDeleted},
		{name: "ten thousand changes of a key", run: manyChanges},
		{name: "clock set by an hour", run: clockSet},
	}
}

// TestChaos breaks everything, in rounds.
func TestChaos(t *testing.T) {
	t.Parallel()
	inRounds(t, faults())
}

// inRounds runs all faults in each round, in a world each.
func inRounds(t *testing.T, all []fault) {
	rounds := number(t, "MUSTER_CHAOS", 0)
	seed := number(t, "MUSTER_CHAOS_SEED", time.Now().UnixNano()%1e9)
	for round := range max(rounds, 1) {
		passed := t.Run(fmt.Sprintf("seed=%d", seed+round), func(t *testing.T) {
			for _, f := range all {
				if f.whole && rounds == 0 {
					continue
				}
				t.Run(f.name, func(t *testing.T) {
					t.Parallel()
					name := fnv.New64()
					_, _ = name.Write([]byte(f.name))
					f.run(t, rand.New(rand.NewPCG(uint64(seed+round), name.Sum64())))
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
