package activity

// FoundRuns returns how many runs are found by their ids.
func (l *Log) FoundRuns() int { return len(l.runs.byID) }
