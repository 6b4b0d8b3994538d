package simulate

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

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

// partition is a file system.
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

// device is a network interface.
func device(index int, name string, mtu int, hardware, state string, addresses ...string) map[string]any {
	addrs := make([]any, len(addresses))
	for i, a := range addresses {
		addrs[i] = map[string]any{"addr": a}
	}

	return map[string]any{"index": float64(index), "mtu": float64(mtu), "name": name, "hardwareAddr": hardware, "flags": []any{state, "broadcast", "multicast", "running"}, "addrs": addrs}
}

// flagList returns the processor flags, shared by all nodes.
func flagList() []any {
	var out []any
	for _, f := range strings.Fields(flags) {
		out = append(out, f)
	}

	return out
}
