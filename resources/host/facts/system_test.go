package facts

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/net"
)

func TestParseRelease(t *testing.T) {
	for text, want := range map[string]release{
		"PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\nID=debian\n": {"debian", "debian", "12", "bookworm"},
		"ID=ubuntu\nID_LIKE=debian\nVERSION_ID='24.04'\n":                                                           {"ubuntu", "debian", "24.04", ""},
		"ID=linuxmint\nID_LIKE=\"ubuntu debian\"\nVERSION_ID=\"22\"":                                                {"linuxmint", "debian", "22", ""},
		"ID=\"rhel\"\nID_LIKE=\"fedora\"\nVERSION_ID=\"9.4\"\n":                                                     {"redhat", "rhel", "9.4", ""},
		"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\nVERSION_ID=\"9.4\"\n":                                        {"rocky", "rhel", "9.4", ""},
		"ID=\"ol\"\nID_LIKE=\"fedora\"\nVERSION_ID=\"8.10\"\n":                                                      {"oracle", "rhel", "8.10", ""},
		"ID=\"amzn\"\nID_LIKE=\"fedora\"\nVERSION_ID=\"2023\"\n":                                                    {"amazon", "rhel", "2023", ""},
		"ID=fedora\nVERSION_ID=41\n":                                                                                {"fedora", "fedora", "41", ""},
		"ID=nobara\nID_LIKE=fedora\nVERSION_ID=40\n":                                                                {"nobara", "fedora", "40", ""},
		"ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\nVERSION_ID=\"15.6\"\n":                                    {"opensuse-leap", "suse", "15.6", ""},
		"ID=\"sles\"\nID_LIKE=\"suse\"\nVERSION_ID=\"15.6\"\n":                                                      {"sles", "suse", "15.6", ""},
		"ID=arch\nBUILD_ID=rolling\n":                                                                               {"arch", "arch", "rolling", ""},
		"ID=manjaro\nID_LIKE=arch\n":                                                                                {"manjaro", "arch", "", ""},
		"ID=alpine\nVERSION_ID=3.20.1\n":                                                                            {"alpine", "alpine", "3.20.1", ""},
		"ID=nixos\nVERSION_ID=\"24.05\"\n":                                                                          {"nixos", "nixos", "24.05", ""},
		"#ID=comment\nno assignment\nID=\"quoted \\\"x\\\" \\$y\"\n VERSION_ID=1 \nEMPTY=":                          {"quoted \"x\" $y", "quoted \"x\" $y", "1", ""},
		"": {},
	} {
		if got := parseRelease(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	if _, err := readRelease("/no/such/file"); err == nil || !strings.Contains(err.Error(), "os-release") {
		t.Errorf("no file: %v", err)
	}
	if _, err := readRelease(t.TempDir()); err == nil {
		t.Error("a directory was read")
	}
}

func TestFullName(t *testing.T) {
	const hosts = "127.0.0.1 localhost\n# 10.0.0.9 web.old.example web\n10.0.0.1 web.example.com web # web.other web\n10.0.0.2 db.example.com\n10.0.0.3 web2.example.com web2\n"
	for _, c := range []struct{ hostname, hosts, domain, want string }{
		{"web.example.org", hosts, "x", "web.example.org"},
		{"web", hosts, "x.example", "web.example.com"},
		{"db", hosts, "(none)\n", "db"},
		{"db", hosts, "x.example\n", "db.x.example"},
		{"we", hosts, "", "we"},
		{"web", "", "", "web"},
		{"localhost", hosts, "(none)", "localhost"},
	} {
		if got := fullName(c.hostname, c.hosts, c.domain); got != c.want {
			t.Errorf("%s is %q, want %q", c.hostname, got, c.want)
		}
	}
}

// address4 writes an address as the kernel does in /proc/net/route.
func address4(a, b, c, d byte) string {
	return fmt.Sprintf("%08X", binary.NativeEndian.Uint32([]byte{a, b, c, d}))
}

func TestDefaultRoute4(t *testing.T) {
	const head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
	line := func(device, destination, gateway, flags string, metric int, mask string) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t0\t0\t%d\t%s\t0\t0\t0   \n", device, destination, gateway, flags, metric, mask)
	}
	none := "00000000"
	local := line("eth9", address4(192, 0, 2, 0), none, "0001", 0, address4(255, 255, 255, 0))
	text := head + local +
		line("wlan0", none, address4(192, 0, 2, 2), "0003", 600, none) +
		line("eth0", none, address4(192, 0, 2, 1), "0003", 100, none) +
		line("eth1", none, address4(192, 0, 2, 3), "0003", 200, none) +
		line("down0", none, address4(192, 0, 2, 4), "0002", 0, none) +
		line("bad0", none, "gateway", "0003", 0, none) +
		line("reject0", none, address4(192, 0, 2, 5), "0201", 0, none) + "short\n"
	got, ok := defaultRoute4(text)
	if !ok || got.device != "eth0" || got.gateway != netip.MustParseAddr("192.0.2.1") {
		t.Errorf("the route is %+v, %v", got, ok)
	}
	for _, text := range []string{"", head, head + local} {
		if got, ok := defaultRoute4(text); ok {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestDefaultRoute6(t *testing.T) {
	zero := strings.Repeat("0", 32)
	gateway := netip.MustParseAddr("fe80::1")
	raw := gateway.As16()
	line := func(destination, prefix, metric, flags, device string) string {
		return fmt.Sprintf("%s %s %s 00 %s %s 00000001 00000000 %s %8s\n", destination, prefix, zero, hex.EncodeToString(raw[:]), metric, flags, device)
	}
	text := line("fd"+zero[2:], "40", "00000100", "00000001", "eth9") +
		line(zero, "00", "00000400", "00000003", "eth1") +
		line(zero, "00", "00000100", "00000003", "eth0") +
		line(zero, "00", "ffffffff", "00200200", "lo") +
		line(zero, "80", "00000000", "00000001", "eth8")
	got, ok := defaultRoute6(text)
	if !ok || got.device != "eth0" || got.gateway != gateway {
		t.Errorf("the route is %+v, %v", got, ok)
	}
	if got, ok := defaultRoute6(line(zero, "00", "ffffffff", "00200200", "lo")); ok {
		t.Errorf("a machine without a route: %+v", got)
	}
}

func TestRouteFacts(t *testing.T) {
	interfaces := net.InterfaceStatList{
		{Name: "lo", Addrs: net.InterfaceAddrList{{Addr: "127.0.0.1/8"}}},
		{Name: "eth0", Addrs: net.InterfaceAddrList{{Addr: "fe80::2/64"}, {Addr: "fd00::2/64"}, {Addr: "192.0.2.9/24"}}},
	}
	for _, c := range []struct{ device, gateway, address, via string }{
		{"eth0", "192.0.2.1", "192.0.2.9", "192.0.2.1"},
		{"eth0", "fe80::1", "fd00::2", "fe80::1"},
		{"eth0", "0.0.0.0", "192.0.2.9", "<nil>"},
		{"ppp0", "0.0.0.0", "<nil>", "<nil>"},
	} {
		got := route{device: c.device, gateway: netip.MustParseAddr(c.gateway)}.facts(interfaces)
		if got["interface"] != c.device || fmt.Sprint(got["address"]) != c.address || fmt.Sprint(got["gateway"]) != c.via {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestPackagesAreListedOnce(t *testing.T) {
	got := packages([]cpu.InfoStat{
		{CPU: 0, PhysicalID: "0", Cores: 1, ModelName: "a"}, {CPU: 1, PhysicalID: "1", Cores: 1, ModelName: "b"},
		{CPU: 2, PhysicalID: "0", Cores: 1}, {CPU: 3, PhysicalID: "1", Cores: 1}, {CPU: 4, PhysicalID: "0", Cores: 1},
	})
	if len(got) != 2 || got[0].ModelName != "a" || got[0].Cores != 3 || got[1].ModelName != "b" || got[1].Cores != 2 {
		t.Errorf("%+v", got)
	}
}
