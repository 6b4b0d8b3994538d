package plan_test

import (
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// unit is a spec that treats app and app.service as the same.
type unit struct {
	model.Common
	Enable bool
}

func (*unit) Validate() model.Problems { return nil }

func (u *unit) CanonicalName() string { return strings.TrimSuffix(u.Name, ".service") }

func declared(file, name, ensure string) *resource.Resource {
	return &resource.Resource{Type: &resource.Type{Info: resource.Info{Name: "unit"}}, Spec: &unit{Common: model.Common{Name: name, Ensure: ensure}}, Pos: model.Position{File: file, Line: 1, Column: 1}}
}

// TestConflictsByOtherNames declares one thing in two manifests under equivalent names.
func TestConflictsByOtherNames(t *testing.T) {
	for _, names := range [][2]string{{"app", "app"}, {"app", "app.service"}, {"app.service", "app"}} {
		claims := plan.Claims{}
		claims.Add("group.all.first", []*resource.Resource{declared("first", names[0], "running")})
		found := claims.Conflicts([]*resource.Resource{declared("second", names[1], "stopped")})
		if len(found) != 1 || !strings.Contains(found[0].Error(), "unit#"+names[1]+" is already declared differently") || !strings.Contains(found[0].Error(), "group.all.first") {
			t.Errorf("%q: %v", names, found)
		}
		second := declared("second", names[1], "running")
		if found := claims.Conflicts([]*resource.Resource{second}); len(found) != 0 {
			t.Errorf("%q want the same: %v", names, found)
		}
		if second.Meta().Name != names[1] {
			t.Errorf("it is called %s now", second.Meta().Name)
		}
	}
}

// TestConflictsByPath declares a file and a part of it in two manifests.
func TestConflictsByPath(t *testing.T) {
	of := func(name string, kind resource.ClaimKind) []*resource.Resource {
		r := declared(name, name, "present")
		r.Type.Claims = func(resource.Spec) []resource.Claim { return []resource.Claim{{Kind: kind, Path: "/etc/x", ID: name}} }
		return []*resource.Resource{r}
	}
	for _, c := range []struct {
		first, second resource.ClaimKind
		want          string
	}{
		{resource.ClaimWhole, resource.ClaimPart, "second:1:1: unit#second and unit#first of group.all.first, which is active, manage the same path (change that manifest, or remove it with muster fleet rm group.all.first)"},
		{resource.ClaimPart, resource.ClaimPart, ""},
		{resource.ClaimAttributes, resource.ClaimPart, ""},
	} {
		claims := plan.Claims{}
		claims.Add("group.all.first", of("first", c.first))
		if got := claims.Conflicts(of("second", c.second)).Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
