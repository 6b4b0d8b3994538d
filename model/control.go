package model

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Pause makes nodes observe without changing anything (io.muster.v1.pause). It is the value of the control
// keys node.<node>.pause and group.<group>.pause.
type Pause struct {
	Protocol string    `json:"protocol"`
	Until    time.Time `json:"until,omitzero" jsonschema_description:"End of the pause, by the clock of the server; absent for no end"`
	By       string    `json:"by,omitempty" jsonschema_description:"Name of the operator; not verified"`
	Reason   string    `json:"reason,omitempty" jsonschema_description:"Reason"`
	At       time.Time `json:"at,omitzero" jsonschema_description:"Time of the request"`
}

// Limits of control documents, in bytes.
const (
	maxControlBy     = 128
	maxControlReason = 512
	// MaxControl limits a control document without signatures.
	MaxControl = 8 << 10
)

// ErrInvalidControl means that a control document is not valid. It is permanent.
var ErrInvalidControl = errors.New("invalid control document")

// DecodePause decodes a pause strictly. The error wraps ErrInvalidControl.
func DecodePause(data []byte) (Pause, error) {
	return decodeDocument[Pause](data, MaxControl, ErrInvalidControl)
}

// decodeDocument decodes and checks a document of at most most bytes strictly. It also returns the decoded part of an
// invalid document.
func decodeDocument[T interface{ Check() error }](data []byte, most int, invalid error) (T, error) {
	var v, none T
	if len(data) > most {
		return none, fmt.Errorf("%w: %d bytes, at most %d are read", invalid, len(data), most)
	}
	if err := DecodeStrict(data, &v); err != nil {
		return none, fmt.Errorf("%w: %w", invalid, err)
	}

	return v, v.Check()
}

// Check reports whether a pause is valid; the error wraps ErrInvalidControl.
func (p Pause) Check() error {
	switch {
	case p.Protocol != ProtocolPause:
		return fmt.Errorf("%w: its protocol is not %s", ErrInvalidControl, ProtocolPause)
	case !isLine(p.By, maxControlBy):
		return fmt.Errorf("%w: by must be one line of at most %d bytes", ErrInvalidControl, maxControlBy)
	case !isLine(p.Reason, maxControlReason):
		return fmt.Errorf("%w: reason must be one line of at most %d bytes", ErrInvalidControl, maxControlReason)
	default:
		return nil
	}
}

func isLine(text string, most int) bool {
	return len(text) <= most && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// Paused is the active pause of a node, with its control key.
type Paused struct {
	Until  time.Time `json:"until,omitzero" jsonschema_description:"End of the pause; absent for no end"`
	By     string    `json:"by,omitempty" jsonschema_description:"Name of the operator; not verified"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at,omitzero" jsonschema_description:"Time of the request"`
	From   string    `json:"from" jsonschema_description:"Control key of the pause"`
}

// String describes the pause: paused until 2026-01-31 11:29:48 UTC by ann: disk is replaced.
func (p Paused) String() string {
	text := strings.TrimSuffix("paused "+p.ends(), " ")
	if p.Reason != "" {
		text += ": " + p.Reason
	}

	return text
}

// Details returns String without the first word: until 2026-01-31 11:29:48 UTC by ann: disk is replaced.
func (p Paused) Details() string {
	text := p.ends()
	switch {
	case p.Reason == "":
		return text
	case text == "":
		return p.Reason
	default:
		return text + ": " + p.Reason
	}
}

func (p Paused) ends() string {
	text := ""
	if !p.Until.IsZero() {
		text = "until " + p.Until.Local().Format(TimeFormat)
	}
	if p.By != "" {
		text += " by " + p.By
	}

	return strings.TrimPrefix(text, " ")
}

// The control keys of a family, without its name.
const (
	ControlPause  = "pause"
	ControlLabels = "labels"
	ControlGroups = "groups"
)

// IsControlKey reports whether a key is a control key.
func IsControlKey(key string) bool {
	family, name, ok := SplitKey(key)

	return ok && (name == ControlPause || (name == ControlLabels || name == ControlGroups) && strings.HasPrefix(family, kindNode+"."))
}

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
	return decodeDocument[Labels](data, 4*MaxControl, ErrInvalidControl)
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

// Groups are the groups that operators assign to a node (io.muster.v1.groups), in addition to the groups of
// its configuration. They are the value of the control key node.<node>.groups.
type Groups struct {
	Protocol string   `json:"protocol"`
	Groups   []string `json:"groups" jsonschema_description:"Groups of the node, in addition to the groups of its configuration"`
	Order    []string `json:"order,omitempty" jsonschema_description:"Groups that take precedence over the others, highest first; default: groups_order of the configuration"`
}

// MaxGroups limits the groups that operators can assign to a node.
const MaxGroups = 64

// DecodeGroups decodes groups strictly. The error wraps ErrInvalidControl.
func DecodeGroups(data []byte) (Groups, error) {
	return decodeDocument[Groups](data, MaxControl, ErrInvalidControl)
}

// Check reports whether groups are valid; the error wraps ErrInvalidControl.
func (g Groups) Check() error {
	if g.Protocol != ProtocolGroups {
		return fmt.Errorf("%w: its protocol is not %s", ErrInvalidControl, ProtocolGroups)
	}
	if n := max(len(g.Groups), len(g.Order)); n > MaxGroups {
		return fmt.Errorf("%w: %d groups, at most %d are allowed", ErrInvalidControl, n, MaxGroups)
	}
	if err := checkGroups(g.Groups); err != nil {
		return err
	}

	return checkGroups(g.Order)
}

func checkGroups(groups []string) error {
	for i, name := range groups {
		switch {
		case !isName(name):
			return fmt.Errorf("%w: group %q, use letters, digits, - and _ only, not beginning with _", ErrInvalidControl, name)
		case name == GroupAll:
			return fmt.Errorf("%w: every node is in the group %s", ErrInvalidControl, GroupAll)
		case slices.Index(groups, name) < i:
			return fmt.Errorf("%w: group %s is given twice", ErrInvalidControl, name)
		}
	}

	return nil
}

// Join returns all groups of a node, the winning group first. The groups of operators
// win over the groups of the configuration. Order names groups that win over all others;
// configuredOrder is used if Order is empty.
func (g Groups) Join(configured, configuredOrder []string) []string {
	order := g.Order
	if len(order) == 0 {
		order = configuredOrder
	}
	all := []string{}
	for _, name := range slices.Concat(g.Groups, configured) {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	rank := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })

	return all
}

// String returns the groups and their order: canary, web; order: web. It is empty for no groups.
func (g Groups) String() string {
	text := strings.Join(g.Groups, ", ")
	if len(g.Order) > 0 {
		text = strings.TrimPrefix(text+"; order: "+strings.Join(g.Order, ", "), "; ")
	}

	return text
}
