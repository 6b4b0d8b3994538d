package facts

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v4/net"
)

// gatherNetwork returns the interfaces. The primary one has the default route of IPv4, or else of IPv6.
func gatherNetwork(ctx context.Context) (map[string]any, error) {
	interfaces, err := net.InterfacesWithContext(ctx)
	if err != nil {
		return nil, err
	}
	list, err := plain(interfaces)
	if err != nil {
		return nil, err
	}
	// A kernel without the protocol lacks the file.
	routes4, _ := os.ReadFile("/proc/net/route")
	routes6, _ := os.ReadFile("/proc/net/ipv6_route")
	network := addressFacts(interfaces, string(routes4), string(routes6))
	network["interfaces"] = list

	return map[string]any{"network": network}, nil
}

func addressFacts(interfaces net.InterfaceStatList, routes4, routes6 string) map[string]any {
	network := map[string]any{"addresses": globalAddresses(interfaces)}
	for _, family := range []struct {
		fact, routes string
		find         func(string) (route, bool)
	}{{"default_ipv4", routes4, defaultRoute4}, {"default_ipv6", routes6, defaultRoute6}} {
		route, ok := family.find(family.routes)
		if !ok {
			continue
		}
		primary := route.facts(interfaces)
		if address, known := primary["address"]; known {
			network[family.fact] = address
		}
		if network["primary"] == nil {
			network["primary"] = primary
		}
	}

	return network
}

func globalAddresses(interfaces net.InterfaceStatList) []any {
	out := []any{}
	for _, i := range interfaces {
		for _, a := range i.Addrs {
			if prefix, err := netip.ParsePrefix(a.Addr); err == nil && prefix.Addr().IsGlobalUnicast() {
				out = append(out, prefix.Addr().String())
			}
		}
	}

	return out
}

type route struct {
	device  string
	gateway netip.Addr
	metric  uint64
}

// facts returns the interface of the route with its first address of the same family.
func (r route) facts(interfaces net.InterfaceStatList) map[string]any {
	primary := map[string]any{"interface": r.device}
	if !r.gateway.IsUnspecified() {
		primary["gateway"] = r.gateway.String()
	}
	for _, i := range interfaces {
		if i.Name != r.device {
			continue
		}
		for _, a := range i.Addrs {
			prefix, err := netip.ParsePrefix(a.Addr)
			if err == nil && prefix.Addr().Is4() == r.gateway.Is4() && !prefix.Addr().IsLinkLocalUnicast() {
				primary["address"] = prefix.Addr().String()
				return primary
			}
		}
	}

	return primary
}

// The flags of a route.
const (
	routeUp     = 0x1
	routeReject = 0x200
)

func defaultRoute4(text string) (route, bool) {
	best := route{metric: math.MaxUint64}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 || f[1] != "00000000" || f[7] != "00000000" || !usable(f[3]) {
			continue
		}
		gateway, err := strconv.ParseUint(f[2], 16, 32)
		metric, err2 := strconv.ParseUint(f[6], 10, 64)
		if err != nil || err2 != nil || metric >= best.metric {
			continue
		}
		// The kernel prints the four bytes as one number in its byte order.
		var bytes [4]byte
		binary.NativeEndian.PutUint32(bytes[:], uint32(gateway))
		best = route{device: f[0], gateway: netip.AddrFrom4(bytes), metric: metric}
	}

	return best, best.device != ""
}

func defaultRoute6(text string) (route, bool) {
	best := route{metric: math.MaxUint64}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 10 || strings.Trim(f[0]+f[1], "0") != "" || f[9] == "lo" || !usable(f[8]) {
			continue
		}
		gateway, err := hex.DecodeString(f[4])
		metric, err2 := strconv.ParseUint(f[5], 16, 64)
		if err != nil || err2 != nil || len(gateway) != 16 || metric >= best.metric {
			continue
		}
		best = route{device: f[9], gateway: netip.AddrFrom16([16]byte(gateway)), metric: metric}
	}

	return best, best.device != ""
}

func usable(flags string) bool {
	n, err := strconv.ParseUint(flags, 16, 32)

	return err == nil && n&routeUp != 0 && n&routeReject == 0
}
