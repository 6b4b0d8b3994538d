package runner

// origin is what made health checks.
type origin int

const (
	byRun origin = iota
	// byRepair is a run that a critical check caused.
	byRepair
	// byPass is a health check pass between runs.
	byPass
)

// findings are what is known when health checks were made.
type findings struct {
	by origin
	// critical is that one was found critical, unknown that one was critical before
	// and was not made this time.
	critical, unknown bool
	// failing is that one was critical when they were made last.
	failing bool
	// mayRepair is that the wait after the last repair that did not help is over.
	mayRepair bool
}

// verdict is what follows from findings.
type verdict struct {
	// run is that a repairing run is due, refresh that it refreshes the resources of
	// critical checks that ask for it.
	run, refresh bool
	// reset and extend change the wait between repairs.
	reset, extend bool
}

// decide judges health checks: a critical one makes a repairing run due, and
// again after a growing wait when one did not help. When a pass finds that it is
// over a run is due too: what failed is stable then, and registers.
func decide(f findings) verdict {
	switch {
	case !f.critical && !f.unknown:
		return verdict{reset: true, run: f.failing && f.by == byPass}
	case f.by == byRepair:
		return verdict{extend: true}
	case f.critical && f.mayRepair:
		return verdict{run: true, refresh: true}
	default:
		return verdict{}
	}
}
