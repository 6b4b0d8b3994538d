package access

import (
	"context"
	"fmt"
)

// Role is a permission. Each role includes the roles before it.
type Role int

// The roles.
const (
	// None permits nothing.
	None Role = iota
	// Read permits to see the fleet.
	Read
	// Operate permits to change it.
	Operate
)

// String returns the word for the role, as in files and flags.
func (r Role) String() string {
	switch r {
	case Read:
		return "read"
	case Operate:
		return "operate"
	default:
		return "none"
	}
}

// ParseRole reads the word for a role, read or operate.
func ParseRole(text string) (Role, error) {
	for _, r := range []Role{Read, Operate} {
		if r.String() == text {
			return r, nil
		}
	}

	return None, fmt.Errorf("unknown role %q: write read or operate", text)
}

// User is the author of a request.
type User struct {
	// Name is the name of the token, or the display name and subject at the provider. It is unique. It is empty without
	// sign-in.
	Name string
	Role Role
	// Subject is the unique id at the provider, empty for tokens.
	Subject string
}

// Share returns a key for limits per user. It does not change with the display name, and is empty without sign-in.
func (u User) Share() string {
	if u.Subject != "" {
		return "oidc " + u.Subject // token names have no spaces
	}

	return u.Name
}

type userKey struct{}

// ForAll returns a context without a user, for a read that many users share. It does not count against the limit of one
// user.
func ForAll(ctx context.Context) context.Context {
	return context.WithValue(ctx, userKey{}, User{})
}

// UserOf returns the user of a context, or a user without a name and role if no Guard passed the request.
func UserOf(ctx context.Context) User {
	u, _ := ctx.Value(userKey{}).(User)

	return u
}
