package runner

// origin is the source of health check results.
type origin int

const (
	byRun origin = iota
	// byRepair is a run because of a critical check.
	byRepair
	// byPass is a health check pass between runs.
	byPass
)

// findings are the results of health checks.
type findings struct {
	by origin
	// critical reports whether a check is critical. unknown reports whether a check was critical before and
	// was not made now.
	critical, unknown bool
	// failing reports whether a check was critical the last time.
	failing bool
	// mayRepair reports whether the wait after the last unsuccessful repair is over.
	mayRepair bool
}

// verdict is the consequence of findings.
type verdict struct {
	// run starts a repair. refresh refreshes resources with a critical check that asks for it.
	run, refresh bool
	// reset and extend change the wait between repairs.
	reset, extend bool
}

// decide judges health checks. A critical check causes a repair, and further repairs after growing waits
// while it stays critical. If a pass finds that all checks recovered, a run follows: it registers the
// resources.
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
