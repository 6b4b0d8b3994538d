package model

import (
	"fmt"
	"strings"
)

// Ref names one resource of a manifest: type#name, or type#alias.
type Ref struct {
	Type string
	Name string
}

// String returns the ref as it is written in manifests and logs, type#name.
func (r Ref) String() string { return r.Type + "#" + r.Name }

// ParseRef reads type#name. The name is everything after the first #. The
// error wraps ErrInvalidRef.
func ParseRef(s string) (Ref, error) {
	typ, name, found := strings.Cut(s, "#")
	if !found || typ == "" || name == "" {
		return Ref{}, fmt.Errorf("%w: %q, write it as type#name, for example file#/etc/motd", ErrInvalidRef, s)
	}

	return Ref{Type: typ, Name: name}, nil
}

// MarshalText makes a ref a string in JSON and YAML.
func (r Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText is the inverse of MarshalText; see ParseRef for its error.
func (r *Ref) UnmarshalText(b []byte) error {
	parsed, err := ParseRef(string(b))
	if err != nil {
		return err
	}
	*r = parsed

	return nil
}
