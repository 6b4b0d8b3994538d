package model

import (
	"errors"
	"fmt"
	"strings"
)

// GroupAll is the group every node is in.
const GroupAll = "all"

// The first tokens of a family and of the subjects that address nodes.
const (
	kindNode  = "node"
	kindGroup = "group"
)

// MaxKey is how many bytes the key of an assignment has at most: nodes keep it in a file of its
// name, with .json behind it.
const MaxKey = 250

// ErrInvalidName is a prefix, node, group, family or manifest name that is
// not valid in a subject; it never becomes valid by trying again.
var ErrInvalidName = errors.New("invalid name")

// NodeFamily is the family of a node's own assignments.
func NodeFamily(node string) string { return kindNode + "." + node }

// GroupFamily is the family of a group's assignments.
func GroupFamily(group string) string { return kindGroup + "." + group }

// Families are the families whose keys apply to a node: its own, its groups in order, and
// that of all nodes; a group named twice counts once.
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

// Key is the key of an assignment.
func Key(family, name string) string { return family + "." + name }

// SplitKey takes the key of an assignment apart; ok is false for a key that is
// none. The reserved names are keys too.
func SplitKey(key string) (family, name string, ok bool) {
	at := strings.LastIndexByte(key, '.')
	if at < 0 || len(key) > MaxKey || !IsToken(key[at+1:]) || CheckFamily(key[:at]) != nil {
		return "", "", false
	}

	return key[:at], key[at+1:], true
}

// IsKeyOf reports whether a key ends with a name, as that of an assignment of a manifest does.
func IsKeyOf(key, name string) bool {
	family, is := strings.CutSuffix(key, name)

	return is && strings.HasSuffix(family, ".")
}

// CheckFamily reports whether a family is node.<node> or group.<group>. The
// error wraps ErrInvalidName.
func CheckFamily(family string) error {
	kind, id, _ := strings.Cut(family, ".")
	if (kind != kindNode && kind != kindGroup) || !isName(id) {
		return fmt.Errorf("%w: %q, write node.<node> or group.<group> of letters, digits, - and _, not beginning with _", ErrInvalidName, family)
	}

	return nil
}

// CheckName reports whether name can be that of a manifest: one token that does
// not begin with _, which is reserved. The error wraps ErrInvalidName.
func CheckName(name string) error {
	if !isName(name) {
		return fmt.Errorf("%w: manifest %q, use letters, digits, - and _ only, not beginning with _", ErrInvalidName, name)
	}

	return nil
}

// CheckKey reports whether a key is that of a manifest. The error wraps
// ErrInvalidName.
func CheckKey(key string) error {
	if len(key) > MaxKey {
		return fmt.Errorf("%w: a key of %d characters, write at most %d characters", ErrInvalidName, len(key), MaxKey)
	}
	if _, name, ok := SplitKey(key); !ok || !isName(name) {
		return fmt.Errorf("%w: key %q, write node.<node>.<name> or group.<group>.<name> of letters, digits, - and _, not beginning with _", ErrInvalidName, key)
	}

	return nil
}

// CheckNode reports whether a node and its groups are one token each that does not
// begin with _, which is reserved. The error wraps ErrInvalidName.
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
