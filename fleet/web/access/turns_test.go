package access

import (
	"context"
	"testing"
	"time"
)

// TestTurnsAreSharedByUsers: a user with many requests leaves places to others, whatever the names.
func TestTurnsAreSharedByUsers(t *testing.T) {
	t.Parallel()
	p := NewTurns(4, 2)
	no := func(u User) bool {
		brief, end := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer end()
		p.share(u.Share()) // another request of the user
		defer p.done(u.Share(), p.shares[u.Share()])
		leave, ok := p.Enter(brief, u.Share())
		if ok {
			leave()
		}
		return !ok
	}
	anna, again, bob := User{Name: "anna (oidc 1)", Subject: "1"}, User{Name: "carl (oidc 1)", Subject: "1"}, User{Name: "bob"}
	var leaves []func()
	for _, u := range []User{anna, again, bob} {
		leave, ok := p.Enter(t.Context(), u.Share())
		if !ok {
			t.Fatalf("%+v has no place", u)
		}
		leaves = append(leaves, leave)
	}
	if !no(anna) || !no(again) || no(bob) {
		t.Error("the share of anna is not two")
	}
	last, _ := p.Enter(t.Context(), "bob")
	if !no(User{Name: "dora"}) || !no(User{}) {
		t.Error("there are more places than four")
	}
	for _, leave := range append(leaves, last) {
		leave()
	}
	if len(p.shares) != 0 {
		t.Errorf("shares that nobody uses are kept: %v", p.shares)
	}
	// Without sign-in, one user may have all.
	for range 4 {
		if _, ok := p.Enter(t.Context(), ""); !ok {
			t.Error("not all are there")
		}
	}
}
