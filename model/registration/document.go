package registration

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/model"
)

// Registration is a service at an address, as a node registers it
// (io.muster.v1.registration).
type Registration struct {
	Protocol     string            `json:"protocol"`
	Cluster      string            `json:"cluster"`
	Service      string            `json:"service"`
	ProtocolName string            `json:"protocol_name" jsonschema_description:"Protocol of the service: http, https, mysql"`
	Address      string            `json:"address"`
	Port         int               `json:"port,omitempty" jsonschema_description:"1 to 65535; absent for a service without a port"`
	Priority     int               `json:"priority" jsonschema_description:"1 to 255; lower first"`
	TTL          model.TTL         `json:"ttl" jsonschema_description:"Time to live unless renewed, or never"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	Node         string            `json:"node" jsonschema_description:"The node that registers it"`
}

// CanonicalAddress returns the canonical form of an IP address or a host name, in which registrations are
// stored and searched: WEB01 is web01.
func CanonicalAddress(s string) string {
	if ip, err := netip.ParseAddr(s); err == nil {
		return ip.String()
	}

	return strings.ToLower(s)
}

// The limits of a registration.
const (
	maxPriority    = 255
	maxPort        = 65535
	maxWord        = 128
	maxAnnotations = 16 << 10

	exampleAddress = "for example ${ Facts.network.primary.address }"
)

// Validate returns all problems of the registration by property. Readers also call it, because a node may
// write any document.
func (r Registration) Validate() model.Problems {
	var out model.Problems
	for _, word := range []struct{ key, value string }{{"cluster", r.Cluster}, {"service", r.Service}, {"protocol", r.ProtocolName}} {
		switch {
		case word.value == "":
			out.Property(word.key, "", "`%s` is required", word.key)
		case !model.IsToken(word.value) || len(word.value) > maxWord:
			out.Property(word.key, "", "`%s` must be one word of letters, digits, - and _, at most %d, not %q", word.key, maxWord, word.value)
		case word.value[0] == '_':
			out.Property(word.key, "", "`%s` must not begin with _, which is reserved, as in %q", word.key, word.value)
		}
	}
	ip, err := netip.ParseAddr(r.Address)
	switch {
	case r.Address == "":
		out.Property("address", exampleAddress, "`address` is required")
	case err == nil && ip.Unmap().IsUnspecified():
		out.Property("address", exampleAddress, "`address` must be reachable from other machines, not %q", r.Address)
	case err == nil && ip.Zone() != "", err != nil && !isHostName(r.Address):
		out.Property("address", "", "`address` must be an IP address or a host name, not %q", r.Address)
	}
	if r.Port < 0 || r.Port > maxPort {
		out = append(out, invalidPort(r.Port))
	}
	if r.Priority < 1 || r.Priority > maxPriority {
		out.Property("priority", "", "`priority` must be from 1 to %d, not %d", maxPriority, r.Priority)
	}
	size := 0
	for k, v := range r.Annotations {
		size += len(k) + len(v)
		if !model.IsLine(k) || !model.IsLine(v) {
			out.Property("annotations", "", "`annotations` must be words of one line that can be printed, not %q: %q", k, v)
		}
	}
	if size > maxAnnotations {
		out.Property("annotations", "", "`annotations` have %d bytes, at most %d are allowed", size, maxAnnotations)
		out[len(out)-1].Cause = model.ErrTooLarge
	}

	return out
}

func invalidPort(port int) model.Problem {
	return model.Problem{Property: "port", Message: fmt.Sprintf("`port` must be from 1 to %d, not %d", maxPort, port)}
}

// Endpoint returns the address with the port, or the address of a service without a port.
func (r Registration) Endpoint() string {
	if r.Port == 0 {
		return r.Address
	}

	return net.JoinHostPort(r.Address, strconv.Itoa(r.Port))
}

// isHostName reports whether s is a host name. A numeric last label makes it an
// IP address.
func isHostName(s string) bool {
	last := s[strings.LastIndexByte(s, '.')+1:]

	return len(s) <= 253 && hostName.MatchString(s) && strings.Trim(last, "0123456789") != ""
}

// hostName matches a host name (RFC 1123): labels of letters, digits and dashes,
// joined by dots.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)
