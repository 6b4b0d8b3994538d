package access

import (
	"errors"
	"strings"
	"testing"
)

// TestPlaces: a user has a share; an unknown user has none.
func TestPlaces(t *testing.T) {
	t.Parallel()
	p := NewPlaces("feeds", 4, 2)
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
	if len(p.of) != 2 {
		t.Errorf("it remembers %v", p.of)
	}
}
