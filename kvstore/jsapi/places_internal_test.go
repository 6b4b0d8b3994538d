package jsapi

import "testing"

// TestExpectedDenials: what shows where JetStream is asked, and what was asked at the
// place of another connection, may be denied; what is asked where it is may not.
func TestExpectedDenials(t *testing.T) {
	t.Parallel()
	connection := uint64(0)
	a := &Places{candidates: []Prefix{Own, Joined}, located: make(chan struct{}), epoch: func() uint64 { return connection }}
	check := func(when string, want map[string]bool) {
		t.Helper()
		for subject, quiet := range want {
			if a.IsExpected(subject) != quiet {
				t.Errorf("%s: %s is expected to be denied: %v", when, subject, !quiet)
			}
		}
	}
	const own, joined = "$JS.API.DIRECT.GET.KV_MUSTER_NODES.x", "fleet.API.DIRECT.GET.KV_MUSTER_NODES.x"
	check("nothing is found", map[string]bool{Own.StreamList(): true, Joined.StreamList(): true, own: false, "muster.report.x": false})
	a.use(Own)
	check("it is found", map[string]bool{Own.StreamList(): false, Joined.StreamList(): true, own: false, "muster.report.x": false})
	connection++
	check("connected again, perhaps to another account", map[string]bool{Own.StreamList(): true, Joined.StreamList(): true, own: true, "muster.report.x": false})
	a.use(Joined)
	check("it is found elsewhere", map[string]bool{Own.StreamList(): true, Joined.StreamList(): false, own: true, joined: false})
	a = &Places{candidates: []Prefix{"x.API"}, chosen: "x.API", epoch: func() uint64 { return 3 }}
	check("a place is chosen", map[string]bool{"x.API.STREAM.LIST": false, own: false})
}
