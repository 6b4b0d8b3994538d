package access

import (
	"context"
	"fmt"
)

// Role is what somebody may do. Who has a later one may do all of the earlier.
type Role int

// The roles.
const (
	// None may do nothing.
	None Role = iota
	// Read sees the fleet.
	Read
	// Operate changes it too.
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

// User is who makes a request.
type User struct {
	// Name is that of the token, or what the provider calls the user, with their subject: nobody
	// can choose that of another. It is empty for anybody on this machine.
	Name string
	Role Role
	// Subject is what the provider never calls anybody else, empty for tokens.
	Subject string
}

// Share names whose share of something a user takes, whatever they are called now; empty for anybody on
// this machine.
func (u User) Share() string {
	if u.Subject != "" {
		return "oidc " + u.Subject // no token has a blank in its name
	}

	return u.Name
}

type userKey struct{}

// ForAll returns a context of which nobody makes the request: what many are shown takes of nobody's share, so that they do not
// wait where one of them has used up their own.
func ForAll(ctx context.Context) context.Context {
	return context.WithValue(ctx, userKey{}, User{})
}

// UserOf returns who makes the request of a context: nobody, with the role None, where no
// Guard let it pass.
func UserOf(ctx context.Context) User {
	u, _ := ctx.Value(userKey{}).(User)

	return u
}
