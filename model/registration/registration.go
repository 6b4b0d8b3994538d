// Package registration defines the services that nodes register: the document, and its creation from the
// entries of resources.
package registration

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
)

// The limits and defaults of an entry.
const (
	defaultPriority = 1
	defaultTTL      = time.Minute
	minTTL          = 3 * time.Second
)

// ErrInvalid reports a stored registration that is unreadable or does not match its subject.
var ErrInvalid = errors.New("invalid registration")

// Validate reports every problem of a resource's entries, by property path:
// register_when_stable.0.port.
func Validate(entries []model.RegisterEntry) model.Problems {
	var out model.Problems
	seen := map[string]bool{}
	for i, e := range entries {
		at := fmt.Sprintf("register_when_stable.%d.", i)
		r := Of(e, "")
		key := fmt.Sprint(r.Cluster, " ", r.ProtocolName, " ", r.Service, " ", r.Address, " ", r.Port)
		r.Address = e.Address // unchanged, for the error
		problems := r.Validate()
		if e.Port != nil && *e.Port == 0 {
			problems = append(problems, invalidPort(0))
		}
		if r.TTL.Std() < minTTL {
			problems.Property("ttl", "", "`ttl` must be at least %s, or never, not %s", minTTL, r.TTL)
		}
		for _, problem := range problems {
			problem.Property = at + problem.Property
			out = append(out, problem)
		}
		if seen[key] {
			out.Property(strings.TrimSuffix(at, "."), "keep one of them", "%s is registered twice", key)
		}
		seen[key] = true
	}

	return out
}

// Of returns the registration of an entry on a node, with defaults.
func Of(e model.RegisterEntry, node string) Registration {
	r := Registration{
		Protocol: model.ProtocolRegistration, Cluster: e.Cluster, Service: e.Service, ProtocolName: e.Protocol,
		Address: CanonicalAddress(e.Address), Priority: defaultPriority, TTL: model.TTL(defaultTTL), Annotations: e.Annotations, Node: node,
	}
	if e.Port != nil {
		r.Port = *e.Port
	}
	if e.Priority != nil {
		r.Priority = *e.Priority
	}
	if e.TTL != nil {
		r.TTL = *e.TTL
	}

	return r
}

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

	return len(s) <= 253 && hostName().MatchString(s) && strings.Trim(last, "0123456789") != ""
}

// hostName matches a host name (RFC 1123): labels of letters, digits and dashes,
// joined by dots. It compiles to 90 KB, which agents do not need.
var hostName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)
})

// Target is an entry of Prometheus service discovery, in a file or over HTTP.
type Target struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// Targets returns registrations with a port as sorted targets of Prometheus. It is never nil: Prometheus rejects
// null.
func Targets(all []Registration) []Target {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b Registration) int { return strings.Compare(a.identity(), b.identity()) })
	out := []Target{}
	for _, r := range sorted {
		if r.Port != 0 {
			out = append(out, Target{Targets: []string{r.Endpoint()}, Labels: r.labels()})
		}
	}

	return out
}

func (r Registration) identity() string {
	return strings.Join([]string{r.Cluster, r.Service, r.ProtocolName, r.Address, strconv.Itoa(r.Port), r.Node}, " ")
}

func (r Registration) labels() map[string]string {
	out := map[string]string{"cluster": r.Cluster, "service": r.Service, "protocol": r.ProtocolName, "node": r.Node, "__meta_muster_priority": strconv.Itoa(r.Priority)}
	for label, keys := range r.AnnotationsByLabel() {
		out[label] = r.Annotations[keys[0]]
	}

	return out
}

// AnnotationsByLabel returns the sorted annotation keys by their Prometheus label. If several keys have one
// label, only the first becomes a label.
func (r Registration) AnnotationsByLabel() map[string][]string {
	out := map[string][]string{}
	for _, k := range slices.Sorted(maps.Keys(r.Annotations)) {
		label := "__meta_muster_annotation_" + labelName(k)
		out[label] = append(out[label], k)
	}

	return out
}

func labelName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, s)
}

// Filter selects registrations. Empty fields select all.
type Filter struct{ Cluster, Service, Protocol string }

func (f Filter) selects(r Registration) bool {
	return (f.Cluster == "" || f.Cluster == r.Cluster) && (f.Service == "" || f.Service == r.Service) && (f.Protocol == "" || f.Protocol == r.ProtocolName)
}

// Of returns the registrations that the filter selects, never nil.
func (f Filter) Of(all []Registration) []Registration {
	out := []Registration{}
	for _, r := range all {
		if f.selects(r) {
			out = append(out, r)
		}
	}

	return out
}
