package model

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// GroupAll is the group every node is in.
const GroupAll = "all"

// The first tokens of a family and of the subjects that address nodes.
const (
	kindNode  = "node"
	kindGroup = "group"
)

// MaxKey limits the bytes of an assignment key, because nodes store the assignment in a file named after its
// key.
const MaxKey = 250

// ErrInvalidName means that a prefix, node, group, family or manifest name is not valid in a subject. It is
// permanent.
var ErrInvalidName = errors.New("invalid name")

// NodeFamily returns the family of a node's own assignments.
func NodeFamily(node string) string { return kindNode + "." + node }

// GroupFamily returns the family of a group's assignments.
func GroupFamily(group string) string { return kindGroup + "." + group }

// Families returns the families that apply to a node: its own family, its groups in order, and the group all.
// A repeated group counts once.
func Families(node string, groups []string) []string {
	families := []string{NodeFamily(node)}
	seen := map[string]bool{GroupAll: true}
	for _, g := range groups {
		if !seen[g] {
			seen[g] = true
			families = append(families, GroupFamily(g))
		}
	}

	return append(families, GroupFamily(GroupAll))
}

// Key returns the key of an assignment.
func Key(family, name string) string { return family + "." + name }

// SplitKey splits the key of an assignment. ok is false if the key is not valid. It accepts reserved names.
func SplitKey(key string) (family, name string, ok bool) {
	at := strings.LastIndexByte(key, '.')
	if at < 0 || len(key) > MaxKey || !IsToken(key[at+1:]) || CheckFamily(key[:at]) != nil {
		return "", "", false
	}

	return key[:at], key[at+1:], true
}

// IsKeyOf reports whether a key ends with the name of a manifest.
func IsKeyOf(key, name string) bool {
	family, is := strings.CutSuffix(key, name)

	return is && strings.HasSuffix(family, ".")
}

// CheckFamily returns an error unless a family is node.<node> or group.<group>. The error wraps
// ErrInvalidName.
func CheckFamily(family string) error {
	kind, id, _ := strings.Cut(family, ".")
	if (kind != kindNode && kind != kindGroup) || !isName(id) {
		return fmt.Errorf("%w: %q, write node.<node> or group.<group> of letters, digits, - and _, not beginning with _", ErrInvalidName, family)
	}

	return nil
}

// CheckName returns an error unless name is valid for a manifest: one token that does not begin with _, which
// is reserved. The error wraps ErrInvalidName.
func CheckName(name string) error {
	if !isName(name) {
		return fmt.Errorf("%w: manifest %q, use letters, digits, - and _ only, not beginning with _", ErrInvalidName, name)
	}

	return nil
}

// CheckKey returns an error unless a key is valid for a manifest. The error wraps ErrInvalidName.
func CheckKey(key string) error {
	if len(key) > MaxKey {
		return fmt.Errorf("%w: a key of %d characters, write at most %d characters", ErrInvalidName, len(key), MaxKey)
	}
	if _, name, ok := SplitKey(key); !ok || !isName(name) {
		return fmt.Errorf("%w: key %q, write node.<node>.<name> or group.<group>.<name> of letters, digits, - and _, not beginning with _", ErrInvalidName, key)
	}

	return nil
}

// CheckNode returns an error unless a node and its groups are tokens that do not begin with _, which is
// reserved. The error wraps ErrInvalidName.
func CheckNode(node string, groups []string) error {
	if !isName(node) {
		return fmt.Errorf("%w: node %q, use letters, digits, - and _ only, not beginning with _ (a dot would let it match keys of other nodes)", ErrInvalidName, node)
	}
	for _, g := range groups {
		if !isName(g) {
			return fmt.Errorf("%w: group %q of node %s, use letters, digits, - and _ only, not beginning with _", ErrInvalidName, g, node)
		}
	}

	return nil
}

func isName(s string) bool { return IsToken(s) && s[0] != '_' }

// IsToken reports whether s is one valid token of a subject or a key: letters,
// digits, - and _, at least one.
func IsToken(s string) bool {
	for _, r := range []byte(s) {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
		default:
			return false
		}
	}

	return s != ""
}

// IsLine reports whether a text can be printed on one line.
func IsLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Line returns a text on one line of at most a number of bytes. It replaces each character that cannot be printed by a
// space, and ends a shortened text with an ellipsis.
func Line(s string, most int) string {
	var b strings.Builder
	for _, r := range s {
		if !unicode.IsPrint(r) {
			r = ' '
		}
		if b.Len()+utf8.RuneLen(r) > most {
			return b.String() + "…"
		}
		b.WriteRune(r)
	}

	return b.String()
}
