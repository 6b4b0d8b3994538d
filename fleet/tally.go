package fleet

// Tally counts statuses.
type Tally struct {
	All         int `json:"-"`
	Targets     int `json:"targets"`
	UpToDate    int `json:"up_to_date"`
	Failed      int `json:"failed"`
	Rejected    int `json:"rejected"`
	Unreachable int `json:"unreachable"`
	Unreadable  int `json:"unreadable"`
	Pending     int `json:"pending"`
}

// TallyOf returns the counts of statuses.
func TallyOf(statuses []RolloutStatus) Tally {
	var t Tally
	for _, s := range statuses {
		t.Add(s)
	}

	return t
}

// Add counts one status.
func (t *Tally) Add(s RolloutStatus) {
	t.All++
	if s.Applies() {
		t.Targets++
	}
	switch s.Status {
	case StatusUpToDate:
		t.UpToDate++
	case StatusFailed:
		t.Failed++
	case StatusRejected:
		t.Rejected++
	case StatusUnreachable:
		t.Unreachable++
	case StatusUnreadable:
		t.Unreadable++
	case StatusPending:
		t.Pending++
	}
}

// AddAll adds the counts of another Tally.
func (t *Tally) AddAll(o Tally) {
	t.All += o.All
	t.Targets += o.Targets
	t.UpToDate += o.UpToDate
	t.Failed += o.Failed
	t.Rejected += o.Rejected
	t.Unreachable += o.Unreachable
	t.Unreadable += o.Unreadable
	t.Pending += o.Pending
}

// NotUpToDate returns the number of statuses of nodes that are not up to date.
func (t Tally) NotUpToDate() int { return t.Failed + t.Open() }

// Open returns the number of statuses that are not final.
func (t Tally) Open() int { return t.Rejected + t.Unreachable + t.Unreadable + t.Pending }
