package access

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestQuotaIsSharedByUsers: whoever asks for much leaves places to others, whatever they are called.
func TestQuotaIsSharedByUsers(t *testing.T) {
	t.Parallel()
	p := NewQuota("reads", 4, 2)
	no := func(u User) bool {
		brief, end := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer end()
		p.share(u.Share()) // another request of the user
		defer p.done(u.Share(), p.shares[u.Share()])
		leave, ok := p.Wait(brief, u)
		if ok {
			leave()
		}
		return !ok
	}
	anna, again, bob := User{Name: "anna (oidc 1)", Subject: "1"}, User{Name: "carl (oidc 1)", Subject: "1"}, User{Name: "bob"}
	var leaves []func()
	for _, u := range []User{anna, again, bob} {
		leave, ok := p.Wait(t.Context(), u)
		if !ok {
			t.Fatalf("%+v has no place", u)
		}
		leaves = append(leaves, leave)
	}
	if !no(anna) || !no(again) || no(bob) {
		t.Error("the share of anna is not two")
	}
	last, _ := p.Wait(t.Context(), bob)
	if !no(User{Name: "dora"}) || !no(User{}) {
		t.Error("there are more places than four")
	}
	for _, leave := range append(leaves, last) {
		leave()
	}
	if len(p.shares) != 0 {
		t.Errorf("shares that nobody uses are kept: %v", p.shares)
	}
	// Where nobody signs in one may have all.
	for range 4 {
		if _, ok := p.Wait(t.Context(), User{}); !ok {
			t.Error("not all are there")
		}
	}
}

// TestQuotaIsTaken: a user has a share; an unknown user has none.
func TestQuotaIsTaken(t *testing.T) {
	t.Parallel()
	p := NewQuota("feeds", 4, 2)
	anna, bob, nobody := User{Name: "anna", Role: Operate}, User{Name: "bob", Role: Read}, User{}
	var leave []func()
	for i, c := range []struct {
		user User
		want string
	}{
		{anna, ""},
		{anna, ""},
		{anna, "2 feeds of anna are open, which is the most for one user: close one"},
		{bob, ""},
		{nobody, ""},
		{bob, "4 feeds are open, which is the most: try again"},
		{nobody, "4 feeds are open"},
	} {
		end, err := p.Take(c.user)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrNoPlace) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%d: %v, want %q", i, err, c.want)
		}
		if err == nil {
			leave = append(leave, end)
		}
	}
	leave[0]()
	if _, err := p.Take(anna); err != nil {
		t.Errorf("after one left: %v", err)
	}
	for _, end := range leave[1:] {
		end()
	}
	for range 3 {
		if _, err := p.Take(nobody); err != nil {
			t.Errorf("after all left: %v", err)
		}
	}
	if len(p.shares) != 2 {
		t.Errorf("it remembers %v", p.shares)
	}
}
