package facts

import (
	"reflect"
	"testing"

	"github.com/shirou/gopsutil/v4/net"
)

func TestAddressFacts(t *testing.T) {
	t.Parallel()
	const routes4 = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\neth1\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\n"
	const routes6 = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth0\n"
	of := func(addresses ...string) (out net.InterfaceAddrList) {
		for _, a := range addresses {
			out = append(out, net.InterfaceAddr{Addr: a})
		}
		return out
	}
	interfaces := net.InterfaceStatList{
		{Name: "lo", Addrs: of("127.0.0.1/8", "::1/128")},
		{Name: "eth0", Addrs: of("fe80::2/64", "2001:db8::2/64", "10.0.0.2/24")},
		{Name: "eth1", Addrs: of("192.168.1.2/24", "169.254.1.1/16")},
	}
	all := []any{"2001:db8::2", "10.0.0.2", "192.168.1.2"}
	for name, c := range map[string]struct {
		routes4, routes6 string
		want             map[string]any
	}{
		"both": {routes4, routes6, map[string]any{
			"addresses": all, "default_ipv4": "192.168.1.2", "default_ipv6": "2001:db8::2",
			"primary": map[string]any{"interface": "eth1", "address": "192.168.1.2", "gateway": "192.168.1.1"},
		}},
		"IPv6": {"", routes6, map[string]any{
			"addresses": all, "default_ipv6": "2001:db8::2",
			"primary": map[string]any{"interface": "eth0", "address": "2001:db8::2", "gateway": "fe80::1"},
		}},
		"no default route": {"", "", map[string]any{"addresses": all}},
	} {
		if got := addressFacts(interfaces, c.routes4, c.routes6); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\ngot  %v\nwant %v", name, got, c.want)
		}
	}
}
