package fleet

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// ControlText describes a revision of a control key in a line, and reports whether it has a signature,
// which only nodes verify.
func ControlText(c model.ControlChange) (text string, isSigned bool) {
	isSigned = signed.IsEnvelope(c.Value)
	_, name, _ := model.SplitKey(c.Key)
	if c.Refused != "" {
		return "not used: it " + c.Refused, isSigned
	}
	if c.Deleted {
		return cmp.Or(map[string]string{model.ControlPause: "resumed"}[name], name+" removed"), isSigned
	}
	value, err := signed.Content(c.Value)
	if err == nil {
		text, err = controlText(name, value)
	}
	if err != nil {
		return "not used: " + err.Error(), isSigned
	}

	return text, isSigned
}

func controlText(name string, value []byte) (string, error) {
	switch name {
	case model.ControlPause:
		p, err := model.DecodePause(value)
		return model.Paused{Until: p.Until, By: p.By, Reason: p.Reason}.String(), err
	case model.ControlLabels:
		l, err := model.DecodeLabels(value)
		var all []string
		for _, key := range slices.Sorted(maps.Keys(l.Labels)) {
			all = append(all, key+"="+l.Labels[key])
		}
		return "labels " + cmp.Or(strings.Join(all, ", "), "none"), err
	case model.ControlGroups:
		g, err := model.DecodeGroups(value)
		return "groups " + cmp.Or(strings.Join(g.Groups, ", "), "none"), err
	default:
		return "no key that muster knows", nil
	}
}
