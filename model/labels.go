package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Labels are the labels that operators assign to a node (io.muster.v1.labels). They override labels of its
// configuration. They are the value of the control key node.<node>.labels.
type Labels struct {
	Protocol string            `json:"protocol"`
	Labels   map[string]string `json:"labels" jsonschema_description:"Labels of the node; they override labels of its configuration"`
}

// Limits of labels that operators assign, in number and bytes.
const (
	MaxLabels     = 64
	maxLabelKey   = 63
	maxLabelValue = 255
)

// DecodeLabels decodes labels strictly. The error wraps ErrInvalidControl.
func DecodeLabels(data []byte) (Labels, error) {
	var l Labels
	if len(data) > MaxControl*4 {
		return l, fmt.Errorf("%w: %d bytes, at most %d are read", ErrInvalidControl, len(data), MaxControl*4)
	}
	if err := DecodeStrict(data, &l); err != nil {
		return Labels{}, fmt.Errorf("%w: %w", ErrInvalidControl, err)
	}

	return l, l.Check()
}

// Check reports whether labels are valid; the error wraps ErrInvalidControl.
func (l Labels) Check() error {
	if l.Protocol != ProtocolLabels {
		return fmt.Errorf("%w: its protocol is not %s", ErrInvalidControl, ProtocolLabels)
	}
	if len(l.Labels) > MaxLabels {
		return fmt.Errorf("%w: %d labels, at most %d are allowed", ErrInvalidControl, len(l.Labels), MaxLabels)
	}
	for _, key := range slices.Sorted(maps.Keys(l.Labels)) {
		if key == "" || !isLine(key, maxLabelKey) {
			return fmt.Errorf("%w: label %q, a name is one line of 1 to %d bytes", ErrInvalidControl, key, maxLabelKey)
		}
		if !isLine(l.Labels[key], maxLabelValue) {
			return fmt.Errorf("%w: label %s, a value is one line of at most %d bytes", ErrInvalidControl, key, maxLabelValue)
		}
	}

	return nil
}

// String returns the labels sorted by name: rack=a3, row=7. It is empty for none.
func (l Labels) String() string {
	all := make([]string, 0, len(l.Labels))
	for _, name := range slices.Sorted(maps.Keys(l.Labels)) {
		all = append(all, name+"="+l.Labels[name])
	}

	return strings.Join(all, ", ")
}
