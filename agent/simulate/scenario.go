package simulate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// Kind is how a node behaves.
type Kind string

// The kinds. Nodes of all kinds except KindSilent run their assignments and report.
const (
	// KindStable is a node with successful runs.
	KindStable Kind = "stable"
	// KindFailing is a node with a failing resource in each manifest.
	KindFailing Kind = "failing"
	// KindDrifting is a node with occasional drift, which is repaired.
	KindDrifting Kind = "drifting"
	// KindFlapping is a node with a resource that another program changes repeatedly.
	KindFlapping Kind = "flapping"
	// KindUnhealthy is a node with an occasionally critical health check.
	KindUnhealthy Kind = "unhealthy"
	// KindLate is a node with fast requests and runs of minutes.
	KindLate Kind = "late"
	// KindSilent is a node that runs its assignments once and then stays silent.
	KindSilent Kind = "silent"
	// KindSkewed is a node with a wrong clock.
	KindSkewed Kind = "skewed"
	// KindOld is a node with an old version of muster.
	KindOld Kind = "old"
	// KindBacklog is a node with many unpublished reports.
	KindBacklog Kind = "backlog"
	// KindHostile is a failing node that sends markup, control characters and very long lines.
	KindHostile Kind = "hostile"
)

// DefaultScenario has nodes of all kinds except KindHostile.
const DefaultScenario = "mixed"

// share is the number of nodes of a kind: a fraction, and a minimum.
type share struct {
	kind  Kind
	part  float64
	least int
}

// scenarios returns the shares of each scenario by its name; all other nodes are stable.
func scenarios() map[string][]share {
	mixed := []share{
		{KindFailing, 0.03, 1}, {KindDrifting, 0.05, 2}, {KindSilent, 0.01, 1}, {KindFlapping, 0, 1}, {KindLate, 0, 1},
		{KindSkewed, 0, 1}, {KindOld, 0, 1}, {KindBacklog, 0, 1}, {KindUnhealthy, 0.01, 1},
	}

	return map[string][]share{
		"stable":        nil,
		DefaultScenario: mixed,
		"hostile":       append([]share{{KindHostile, 0.01, 1}}, mixed...),
	}
}

// Scenarios returns the sorted names of the scenarios.
func Scenarios() []string { return slices.Sorted(maps.Keys(scenarios())) }

// NamePrefix is the prefix of the names of simulated nodes.
const NamePrefix = "sim-"

// Label marks simulated nodes. It distinguishes them from other nodes with such names.
const Label = "simulated"

// GroupSim is the group of all simulated nodes. Each is also in the group of its role.
const GroupSim = "sim"

// Plan describes a fleet of scripts. Equal plans give equal scripts.
type Plan struct {
	// Nodes is the number of nodes.
	Nodes int
	// Scenario is one of Scenarios, empty for DefaultScenario.
	Scenario string
	Seed     uint64
	// RunTime limits the duration of a run, except on late nodes; 0 means DefaultRunTime.
	RunTime time.Duration
}

// DefaultRunTime limits the duration of runs. lateRunTime limits runs on late nodes.
const (
	DefaultRunTime = 200 * time.Millisecond
	lateRunTime    = 20 * time.Minute
)

// Script describes a node and its behaviour.
type Script struct {
	Node string
	Kind Kind
	// Host is the name of its machine.
	Host   string
	Groups []string
	Labels map[string]string
	// Version is the version of muster on the node, empty for the version of the simulation.
	Version string
	// Skew is the offset of its clock.
	Skew time.Duration
	// Backlog is the number of reports that it never publishes.
	Backlog int
	// Error is the error of a resource of each manifest, empty for none.
	Error string
	// RunTime limits the duration of its runs. They take at least half of it.
	RunTime time.Duration

	// seed is the seed of its random choices.
	seed [2]uint64
}

// Scripts returns the scripts of a plan sorted by name. It returns an error for an invalid plan.
func Scripts(p Plan) ([]Script, error) {
	if p.Scenario == "" {
		p.Scenario = DefaultScenario
	}
	shares, known := scenarios()[p.Scenario]
	switch {
	case !known:
		return nil, fmt.Errorf("unknown scenario %q, there is %s", p.Scenario, strings.Join(Scenarios(), ", "))
	case p.Nodes < 1:
		return nil, fmt.Errorf("%d nodes: at least one is needed", p.Nodes)
	}
	if p.RunTime <= 0 {
		p.RunTime = DefaultRunTime
	}
	kinds := kindsOf(p, shares)
	out := make([]Script, p.Nodes)
	for i := range out {
		out[i] = script(p, i, kinds[i])
	}

	return out, nil
}

func kindsOf(p Plan, shares []share) []Kind {
	kinds := make([]Kind, p.Nodes)
	for i := range kinds {
		kinds[i] = KindStable
	}
	order := rand.New(rand.NewPCG(p.Seed, 0)).Perm(p.Nodes)
	for _, s := range shares {
		count := min(max(int(s.part*float64(p.Nodes)), s.least), len(order))
		for _, i := range order[:count] {
			kinds[i] = s.kind
		}
		order = order[count:]
	}

	return kinds
}

// place returns a value for each node in turn.
func place[T any](values []T, i int) T { return values[i%len(values)] }

func script(p Plan, i int, kind Kind) Script {
	role := place([]string{"web", "web", "web", "db", "cache"}, i)
	name := fmt.Sprintf("%s%04d", NamePrefix, i+1)
	s := Script{
		Node: name, Kind: kind, RunTime: p.RunTime, seed: [2]uint64{p.Seed, uint64(i) + 1},
		Host:   fmt.Sprintf("%s%04d.%s.example.net", role, i+1, site(i)),
		Groups: []string{GroupSim, NamePrefix + role},
		Labels: map[string]string{Label: "yes", "role": role, "site": site(i), "rack": fmt.Sprintf("%c%d", 'a'+rune(i/20%6), i/4%5+1)},
	}
	switch kind {
	case KindFailing:
		s.Error = place(failures(), int(p.Seed%7)+i)
	case KindHostile:
		s.Error, s.Host = hostileText, hostileText
		s.Labels["owner"] = hostileText
	case KindLate:
		s.RunTime = lateRunTime
	case KindSkewed:
		s.Skew = -37 * time.Minute
	case KindOld:
		s.Version = "0.1.0"
	case KindBacklog:
		s.Backlog = 12_345
	}

	return s
}

func site(i int) string { return place([]string{"ams1", "fra2"}, i/40) }

// failures are errors of resources.
func failures() []string { return []string{noSpace, noMirror, noStart} }

const (
	noSpace  = "no space left on device"
	noMirror = "E: Unable to locate package: the mirror deb.example.net cannot be reached"
	noStart  = "the unit failed to start: exit code 203, see journalctl -u"
)

// errorOf returns an error for a resource of a type. For example, a service does not fail because of a
// mirror.
func (s *Script) errorOf(typ string) string {
	switch {
	case s.Kind != KindFailing:
		return s.Error
	case typ == "service":
		return noStart
	case typ == "package" && s.Error != noSpace:
		return noMirror
	default:
		return noSpace
	}
}

// platform is an operating system.
type platform struct{ name, family, version, kernel string }

func platforms() []platform {
	return []platform{
		{"debian", "debian", "12.11", "6.1.0-37-amd64"},
		{"debian", "debian", "12.11", "6.1.0-35-amd64"},
		{"ubuntu", "debian", "24.04", "6.8.0-60-generic"},
		{"almalinux", "rhel", "9.6", "5.14.0-570.21.1.el9_6.x86_64"},
	}
}

// flags are the flags of a processor, a fifth of the facts of a node.
const flags = "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse sse2 ss ht syscall nx pdpe1gb rdtscp lm constant_tsc arch_perfmon rep_good nopl xtopology nonstop_tsc cpuid tsc_known_freq pni pclmulqdq vmx ssse3 fma cx16 pcid sse4_1 sse4_2 x2apic movbe popcnt tsc_deadline_timer aes xsave avx f16c rdrand hypervisor lahf_lm abm 3dnowprefetch cpuid_fault ssbd ibrs ibpb stibp ibrs_enhanced tpr_shadow flexpriority ept vpid ept_ad fsgsbase tsc_adjust bmi1 avx2 smep bmi2 erms invpcid avx512f avx512dq rdseed adx smap avx512ifma clflushopt clwb avx512cd sha_ni avx512bw avx512vl xsaveopt xsavec xgetbv1 xsaves wbnoinvd arat avx512vbmi umip pku ospke avx512_vbmi2 gfni vaes vpclmulqdq avx512_vnni avx512_bitalg avx512_vpopcntdq rdpid fsrm md_clear arch_capabilities"

// facts returns the facts of a node at a time, with the shape and size of real facts. Stable facts never
// change; others depend on the time.
func (s *Script) facts(now time.Time, cpuFlags []any) model.Facts {
	r := rand.New(rand.NewPCG(s.seed[0], s.seed[1]))
	system := place(platforms(), r.IntN(16))
	cores, memory := 2<<r.IntN(5), uint64(4<<r.IntN(6))<<30
	a, b, c := r.IntN(250)+1, r.IntN(250)+1, r.IntN(250)+1
	address, boot := fmt.Sprintf("10.%d.%d.%d", a, b, c), 1_780_000_000+r.Int64N(10_000_000)
	used := memory / 100 * uint64(20+(now.Unix()+int64(c))%60)
	short, _, _ := strings.Cut(s.Host, ".")
	facts := model.Facts{
		"hostname": short, "fqdn": s.Host, "rack": s.Labels["rack"], "site": s.Labels["site"],
		"host": map[string]any{"info": map[string]any{
			"hostname": short, "os": "linux", "platform": system.name, "platformFamily": system.family, "platformVersion": system.version,
			"kernelVersion": system.kernel, "kernelArch": "x86_64", "hostId": fmt.Sprintf("%016x-%04x", r.Uint64(), r.IntN(1<<16)), "bootTime": float64(boot),
			"uptime": float64(max(now.Unix()-boot, 0)), "procs": float64(120 + r.IntN(200)), "virtualizationSystem": "kvm", "virtualizationRole": "guest", "rebootRequired": r.IntN(20) == 0,
		}},
		"cpu": map[string]any{"count": float64(cores), "info": []any{map[string]any{
			"cpu": 0.0, "vendorId": "GenuineIntel", "family": "6", "model": "106", "stepping": 6.0, "physicalId": "0", "coreId": "0", "cores": float64(cores),
			"modelName": "Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz", "mhz": 2900.0 + float64(now.Unix()%100), "cacheSize": 55296.0, "flags": cpuFlags, "microcode": "0xd0003f5",
		}}},
		"memory": map[string]any{
			"virtual": map[string]any{
				"total": float64(memory), "available": float64(memory - used), "used": float64(used), "usedPercent": float64(used) / float64(memory) * 100, "free": float64(memory - used), "active": float64(used / 2), "inactive": float64(used / 3),
				"wired": 0.0, "laundry": 0.0, "buffers": float64(used / 50), "cached": float64(used / 4), "writeBack": 0.0, "dirty": 376832.0, "writeBackTmp": 0.0, "shared": 1236992.0, "slab": float64(used / 40), "sreclaimable": float64(used / 60), "sunreclaim": float64(used / 120),
				"pageTables": 5410816.0, "swapCached": 0.0, "commitLimit": float64(memory / 2), "committedAS": float64(used), "highTotal": 0.0, "highFree": 0.0, "lowTotal": 0.0, "lowFree": 0.0, "swapTotal": 0.0, "swapFree": 0.0, "mapped": 219127808.0,
				"vmallocTotal": 35184372087808.0, "vmallocUsed": 14684160.0, "vmallocChunk": 0.0, "hugePagesTotal": 0.0, "hugePagesFree": 0.0, "hugePagesRsvd": 0.0, "hugePagesSurp": 0.0, "hugePageSize": 2097152.0, "anonHugePages": 0.0,
			},
			"swap": map[string]any{"total": 0.0, "used": 0.0, "free": 0.0, "usedPercent": 0.0, "sin": 0.0, "sout": 0.0, "pgIn": 0.0, "pgOut": 0.0, "pgFault": 0.0, "pgMajFault": 0.0},
		},
		"partition": map[string]any{"partitions": []any{
			partition("/dev/vda1", "/", "ext4", 64<<30, used), partition("/dev/vda15", "/boot/efi", "vfat", 127<<20, used), partition("/dev/vdb", "/var/lib", "xfs", uint64(128<<r.IntN(4))<<30, used),
		}},
		"network": map[string]any{
			"interfaces": []any{
				device(1, "lo", 65536, "", "up", "127.0.0.1/8", "::1/128"),
				device(2, "ens3", 1500, fmt.Sprintf("52:54:00:%02x:%02x:%02x", a, b, c), "up", address+"/16", fmt.Sprintf("fe80::5054:ff:%02x:%02x%02x/64", a, b, c)),
				device(3, "wg0", 1420, "", "up", fmt.Sprintf("172.16.%d.%d/32", b, c)),
			},
			"primary": map[string]any{"interface": "ens3", "gateway": fmt.Sprintf("10.%d.0.1", a), "address": address},
		},
	}
	if s.Kind == KindHostile {
		facts[hostileText], facts["motd"] = hostileText, hostileLine(100<<10)
	}

	return facts
}

func partition(name, at, fstype string, size, noise uint64) map[string]any {
	used := size/4 + noise%(size/2)

	return map[string]any{
		"device": name, "mountpoint": at, "fstype": fstype, "opts": []any{"rw", "relatime"},
		"usage": map[string]any{
			"path": at, "fstype": fstype, "total": float64(size), "free": float64(size - used), "used": float64(used), "usedPercent": float64(used) / float64(size) * 100,
			"inodesTotal": float64(size >> 14), "inodesUsed": float64(used >> 16), "inodesFree": float64(size>>14 - used>>16), "inodesUsedPercent": 3.0,
		},
	}
}

func device(index int, name string, mtu int, hardware, state string, addresses ...string) map[string]any {
	addrs := make([]any, len(addresses))
	for i, a := range addresses {
		addrs[i] = map[string]any{"addr": a}
	}

	return map[string]any{"index": float64(index), "mtu": float64(mtu), "name": name, "hardwareAddr": hardware, "flags": []any{state, "broadcast", "multicast", "running"}, "addrs": addrs}
}

func flagList() []any {
	var out []any
	for _, f := range strings.Fields(flags) {
		out = append(out, f)
	}

	return out
}

// hostileText must appear as text on a page, have no effect on a terminal, and stay in one cell of a table.
const hostileText = `<script>alert(1)</script><img src=x onerror=alert(2)> "'` + "`\x1b[2J\x1b]0;title\x07\u202etxt.exe\u0000\t| {{7*7}} ${7*7} %s $(id) ' OR 1=1 --"

func hostileLine(size int) string {
	return strings.Repeat(hostileText, size/len(hostileText)+1)[:size]
}
