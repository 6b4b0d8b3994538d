package registration

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

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

// identity returns what distinguishes a registration from others.
func (r Registration) identity() string {
	return strings.Join([]string{r.Cluster, r.Service, r.ProtocolName, r.Address, strconv.Itoa(r.Port), r.Node}, " ")
}

// labels returns the labels of the target of a registration.
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

// labelName replaces what Prometheus does not accept in the name of a label.
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

// selects reports whether the filter selects a registration.
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
