package model_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		key, family, name string
		ok                bool
	}{
		{"node.web01.motd", "node.web01", "motd", true},
		{"group.all._index", "group.all", "_index", true},
		{"node.web01", "", "", false},
		{"node.web.01.motd", "", "", false},
		{"team.web.motd", "", "", false},
		{"node..motd", "", "", false},
		{"node.web01.", "", "", false},
		{"host.a.b", "", "", false},
		{"node.a.../../x", "", "", false},
		{"node.a.b/c", "", "", false},
		{"node._a.b", "", "", false},
		{"", "", "", false},
		{"node.a." + strings.Repeat("x", model.MaxKey-7), "node.a", strings.Repeat("x", model.MaxKey-7), true},
		{"node.a." + strings.Repeat("x", model.MaxKey-6), "", "", false},
	} {
		family, name, ok := model.SplitKey(tt.key)
		if family != tt.family || name != tt.name || ok != tt.ok {
			t.Errorf("split %q = %q, %q, %v", tt.key, family, name, ok)
		}
		if ok && model.Key(family, name) != tt.key {
			t.Errorf("join of %q = %q", tt.key, model.Key(family, name))
		}
	}
	if got := strings.Join(model.Families("web01", []string{"web", "db", "web", "all"}), " "); got != "node.web01 group.web group.db group.all" {
		t.Errorf("families = %s", got)
	}
}

// TestNamesOfKeys checks that only the last token of a key is its name.
func TestNamesOfKeys(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{"group.web.motd": true, "node.web01.motd": true, "group.web.other-motd": false, "group.motd.web": false, "motd": false, "": false} {
		if got := model.IsKeyOf(key, "motd"); got != want {
			t.Errorf("%q: %t", key, got)
		}
	}
}

// TestLongKeys checks the error for a key that is too long.
func TestLongKeys(t *testing.T) {
	t.Parallel()
	err := model.CheckKey("node.a." + strings.Repeat("x", 3000))
	if !errors.Is(err, model.ErrInvalidName) || !strings.Contains(err.Error(), "at most 250 characters") || len(err.Error()) > 200 {
		t.Error(err)
	}
}

func FuzzSplitKey(f *testing.F) {
	for _, seed := range []string{"node.web01.motd", "group.all._index", "node.a.b.c", ".", "node..", "\x00.\xff.x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		family, name, ok := model.SplitKey(key)
		if ok && (model.Key(family, name) != key || model.CheckFamily(family) != nil || !model.IsToken(name)) {
			t.Errorf("%q gives %q and %q", key, family, name)
		}
	})
}
