package view_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/fleet/view"

	"github.com/musterfleet/muster/model"
)

func inventories(all ...model.Inventory) iter.Seq2[model.Inventory, error] {
	return func(yield func(model.Inventory, error) bool) {
		for _, i := range all {
			if !yield(i, nil) {
				return
			}
		}
	}
}

// TestMatchPackages: versions compare by the scheme of their manager, and nodes without an
// inventory are named.
func TestMatchPackages(t *testing.T) {
	deb := func(name, version string) model.Package {
		return model.Package{Name: name, Version: version, Arch: "amd64", Manager: "deb"}
	}
	all := inventories(
		model.Inventory{Node: "web01", Packages: []model.Package{deb("openssl", "3.0.9-1~deb12u1"), deb("bash", "5.2")}},
		model.Inventory{Node: "web02", Packages: []model.Package{deb("openssl", "3.0.15-1~deb12u1")}},
		model.Inventory{Node: "alma", Packages: []model.Package{{Name: "openssl", Version: "1:3.0.7-27.el9", Manager: "rpm"}}},
		model.Inventory{Node: "names", Incomplete: "it exceeds 64 KiB", Packages: []model.Package{{Name: "openssl", Manager: "deb"}}},
		model.Inventory{Node: "odd", Unreadable: "garbage"},
		model.Inventory{Node: "forgotten", Packages: []model.Package{deb("openssl", "1.0")}},
	)
	nodes := []string{"web01", "web02", "alma", "names", "odd", "new"}
	for text, want := range map[string][]string{
		`name == "openssl"`:                                        {"alma", "names", "web01", "web02"},
		`name == "openssl" && older(version, "3.0.15")`:            {"web01"},
		`name == "openssl" && older(version, "3.0.15", manager)`:   {"web01"},
		`name == "openssl" && newer("3.0.15", version)`:            {"web01"},
		`name == "openssl" && older(version, "1:3.0.7-28", "rpm")`: {"alma", "web01", "web02"},
		`upstream(version) == "3.0.15"`:                            {"web02"},
	} {
		e, err := targets.CompilePackages(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		m, err := view.MatchPackages(e.Evaluator(nil), targets.NewFinder(e.Mentions()), nodes, all)
		var got []string
		for _, r := range m.Rows {
			got = append(got, r.Node)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
		if !slices.Equal(m.Unstored, []string{"new"}) || !slices.Equal(m.Unreadable, []string{"odd"}) || m.Partial["names"] == "" {
			t.Errorf("%s: %+v", text, m)
		}
		if compares := text != `name == "openssl"` && text != `upstream(version) == "3.0.15"`; compares != slices.Equal(m.Undecided, []string{"names"}) {
			t.Errorf("%s: undecided %v", text, m.Undecided)
		}
	}
	for _, text := range []string{`nme == "x"`, `older(version, "1", "apk")`, `group("web")`, `facts.x == 1`} {
		if _, err := targets.CompilePackages(text); err == nil {
			t.Errorf("%s compiles", text)
		}
	}
}

// BenchmarkMatchPackages queries 1,000 nodes with 1,500 packages each.
func BenchmarkMatchPackages(b *testing.B) {
	var packages []model.Package
	for i := range 1500 {
		packages = append(packages, model.Package{Name: fmt.Sprintf("package-%d", i), Version: "1.2-3", Arch: "amd64", Manager: "deb"})
	}
	var all []model.Inventory
	var nodes []string
	for i := range 1000 {
		nodes = append(nodes, fmt.Sprintf("node%d", i))
		all = append(all, model.Inventory{Node: nodes[i], Packages: packages})
	}
	e, err := targets.CompilePackages(`name == "package-700" && older(version, "3.0.15")`)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if m, err := view.MatchPackages(e.Evaluator(nil), targets.NewFinder(e.Mentions()), nodes, inventories(all...)); err != nil || len(m.Rows) != 1000 {
			b.Fatal(err, len(m.Rows))
		}
	}
}
