package view

import (
	"cmp"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// DescribeControl describes a revision of a control key in one line, and reports whether it has a signature, which
// only nodes verify.
func DescribeControl(c model.Entry) (text string, isSigned bool) {
	isSigned = signed.IsEnvelope(c.Value)
	_, name, _ := model.SplitKey(c.Key)
	switch {
	case c.Refused != "":
		return "not used: it " + c.Refused, isSigned
	case c.Deleted && name == model.ControlPause:
		return "resumed", isSigned
	case c.Deleted:
		return name + " removed", isSigned
	}
	text, err := controlText(name, c.Value)
	if err != nil {
		text = "not used: " + err.Error()
	}

	return text, isSigned
}

func controlText(name string, value []byte) (string, error) {
	switch name {
	case model.ControlPause:
		p, err := decodePause(value)
		return p.String(), err
	case model.ControlLabels, model.ControlGroups:
		text, err := DescribeControlValue(name, value)
		if text == nothingOf(name) {
			return text, err
		}
		return name + " " + text, err
	default:
		return "no key that muster knows", nil
	}
}

// DescribeControlValue describes the value of a control key by the last part of the key: end, author and reason of a
// pause; labels; groups.
func DescribeControlValue(name string, value []byte) (string, error) {
	switch name {
	case model.ControlPause:
		p, err := decodePause(value)
		return p.Details(), err
	case model.ControlLabels:
		l, err := decodeSigned(value, model.DecodeLabels)
		return cmp.Or(l.String(), nothingOf(name)), err
	case model.ControlGroups:
		g, err := decodeSigned(value, model.DecodeGroups)
		return cmp.Or(g.String(), nothingOf(name)), err
	default:
		return "", nil
	}
}

// nothingOf describes an empty list: no labels, no groups.
func nothingOf(name string) string { return "no " + name }

func decodePause(value []byte) (model.Paused, error) {
	p, err := decodeSigned(value, model.DecodePause)

	return model.Paused{Until: p.Until, By: p.By, Reason: p.Reason}, err
}

// decodeSigned decodes a document with or without an envelope.
func decodeSigned[T any](value []byte, decode func([]byte) (T, error)) (T, error) {
	content, err := signed.Content(value)
	if err != nil {
		var none T
		return none, err
	}

	return decode(content)
}
