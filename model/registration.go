package model

import (
	"net/netip"
	"strings"
)

// RegisterEntry is one entry of the property register_when_stable: what is told
// to others while the resource is in its state.
type RegisterEntry struct {
	Cluster     string            `json:"cluster" jsonschema_description:"Which cluster it belongs to: one word of letters, digits, - and _"`
	Service     string            `json:"service" jsonschema_description:"What it offers, one word"`
	Protocol    string            `json:"protocol" jsonschema_description:"How it is spoken to, one word: http, https, mysql"`
	Address     string            `json:"address" jsonschema_description:"IP address or host name"`
	Port        int               `json:"port" jsonschema:"minimum=1,maximum=65535"`
	Priority    *int              `json:"priority,omitempty" jsonschema:"default=1" jsonschema_description:"1 to 255, the lower first"`
	TTL         *Duration         `json:"ttl,omitempty" jsonschema:"default=1m" jsonschema_description:"How long it holds unless it is renewed, 3s to 24h"`
	Annotations map[string]string `json:"annotations,omitempty" jsonschema_description:"Words about it for those who look it up"`
}

// Registration is a service at an address, as a node registers it
// (io.muster.v1.registration).
type Registration struct {
	Protocol     string            `json:"protocol"`
	Cluster      string            `json:"cluster"`
	Service      string            `json:"service"`
	ProtocolName string            `json:"protocol_name" jsonschema_description:"How it is spoken to: http, https, mysql"`
	Address      string            `json:"address"`
	Port         int               `json:"port"`
	Priority     int               `json:"priority" jsonschema_description:"1 to 255, the lower first"`
	TTL          Duration          `json:"ttl" jsonschema_description:"How long it holds unless it is renewed"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	Node         string            `json:"node" jsonschema_description:"Who tells of it"`
}

// CanonicalAddress returns an IP address or a host name in the one form in which
// registrations are stored and looked for: WEB01 is web01.
func CanonicalAddress(s string) string {
	if ip, err := netip.ParseAddr(s); err == nil {
		return ip.String()
	}

	return strings.ToLower(s)
}
