package fleet_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// inventoriesOf holds inventories by node, and records the nodes that were read.
type inventoriesOf struct {
	all   map[string]model.Inventory
	asked []string
}

func (i *inventoriesOf) get(_ context.Context, nodes []string) iter.Seq2[model.Inventory, error] {
	i.asked = append(i.asked, nodes...)

	return func(yield func(model.Inventory, error) bool) {
		for _, n := range nodes {
			if stored, ok := i.all[n]; ok && !yield(stored, nil) {
				return
			}
		}
	}
}

// packageFleet returns nodes with old and new packages, and nodes with a missing, an incomplete and
// an unreadable inventory.
func packageFleet() ([]model.Node, *inventoriesOf) {
	openssl := func(manager, version string) model.Package {
		return model.Package{Name: "openssl", Version: version, Arch: "amd64", Manager: manager}
	}
	bash := model.Package{Name: "bash", Version: "5.2-1", Manager: "deb"}
	all := map[string]model.Inventory{
		"alma": {Packages: []model.Package{openssl("rpm", "1:3.0.7-28.el9"), openssl("rpm", "1:3.0.6-1.el9"), openssl("rpm", "1:3.0.9-1.el9")}},
		"none": {Packages: []model.Package{bash}},
		"new":  {Packages: []model.Package{bash, openssl("deb", "3.0.15-1~deb12u1")}},
		"old":  {Packages: []model.Package{openssl("deb", "3.0.14-1~deb12u2")}},
		"part": {Packages: []model.Package{openssl("deb", "")}, Incomplete: "versions are missing"},
		"torn": {Unreadable: "garbage"},
	}
	nodes := []model.Node{node("unstored", []string{"web"}, nil)}
	for n, i := range all {
		i.Node = n
		all[n] = i
		nodes = append(nodes, node(n, []string{"web"}, nil))
	}
	slices.SortFunc(nodes, func(a, b model.Node) int { return strings.Compare(a.Node, b.Node) })

	return nodes, &inventoriesOf{all: all}
}

// TestPackagesInTargets: versions compare by the scheme of their manager, a node without an
// inventory is undecided, and inventories are read only for nodes that need them.
func TestPackagesInTargets(t *testing.T) {
	t.Parallel()
	everyNode := []string{"alma", "new", "none", "old", "part", "torn", "unstored"}
	facts := &factsOf{facts: map[string]model.NodeFacts{"old": {Node: "old", Facts: model.Facts{"memory": 1.0}}, "new": {Node: "new", Facts: model.Facts{"memory": 9.0}}}}
	for _, c := range []struct {
		expression string
		// nodes match. read are the nodes with a read inventory.
		nodes, undecided, read, warnings []string
	}{
		{expression: `package("openssl") != nil && older(package("openssl").version, "3.0.15")`, nodes: []string{"old"}, undecided: []string{"part", "torn", "unstored"}, read: everyNode},
		{expression: `older(package("openssl").version, "1:3.0.7")`, nodes: []string{"alma", "new", "old"}, undecided: []string{"part", "torn", "unstored"}, read: everyNode},
		{expression: `newer("1:3.0.7-1.el9", package("openssl").version) && group("web")`, nodes: []string{"alma", "new", "old"}, undecided: []string{"part", "torn", "unstored"}, read: everyNode},
		{expression: `older(package("openssl").version, "3.0.15", "semver")`, undecided: []string{"alma", "new", "old", "part", "torn", "unstored"}, read: everyNode},
		{expression: `package("openssl") == nil`, nodes: []string{"none"}, undecided: []string{"torn", "unstored"}, read: everyNode},
		{expression: `package("openssl").manager == "rpm" && package("openssl")["arch"] == "amd64"`, nodes: []string{"alma"}, undecided: []string{"torn", "unstored"}, read: everyNode},
		{expression: `any([1, 2], package("bash") != nil)`, nodes: []string{"new", "none"}, undecided: []string{"part", "torn", "unstored"}, read: everyNode},
		{expression: `package("openssl")`, undecided: []string{"alma", "new", "old", "part", "torn", "unstored"}, read: everyNode},
		{expression: `node == "x" && package("openssl") != nil`, warnings: []string{`no node has the name "x"`}},
		{expression: `node matches "x" && package("openssl") != nil`},
		{expression: `node == "old" && package("openssl") != nil && facts.memory == 1`, nodes: []string{"old"}, read: []string{"old"}},
		{expression: `(node == "old" || node == "new") && facts.memory == 9 && package("openssl") != nil && facts.memory > 1`, nodes: []string{"new"}, read: []string{"new", "old"}},
		{expression: `node == "unstored" && package("openssl") != nil || node == "old" && facts.memory == 1`, nodes: []string{"old"}, undecided: []string{"unstored"}, read: []string{"old", "unstored"}},
		{expression: `node == "alma" && package("openssl") != nil && facts.memory == 1`, undecided: []string{"alma"}, read: []string{"alma"}},
		{
			expression: `node == "new" && package("opensl") != nil`, read: []string{"new"},
			warnings: []string{`none of 1 inventories has the package "opensl"; did you mean openssl?`},
		},
		{expression: `package("terraform") != nil || package("bash") != nil || package("terraform") != nil`, nodes: []string{"new", "none"}, undecided: []string{"part", "torn", "unstored"}, read: everyNode, warnings: []string{`none of 5 inventories has the package "terraform"`}},
	} {
		e, err := fleet.CompileTarget(c.expression)
		if err != nil {
			t.Error(err)
			continue
		}
		nodes, stored := packageFleet()
		s := fleet.Selector{Facts: facts.get, Inventories: stored.get}
		got, err := s.Select(t.Context(), e, nodes)
		var names, undecided []string
		for _, n := range got.Nodes {
			names = append(names, n.Node)
		}
		for _, u := range got.Undecided {
			undecided = append(undecided, u.Node)
		}
		if err != nil || !slices.Equal(names, c.nodes) || !slices.Equal(undecided, c.undecided) || !slices.Equal(stored.asked, c.read) || !slices.Equal(got.Warnings, c.warnings) {
			t.Errorf("%s: %v, undecided %v, inventories of %v, warnings %q, %v", c.expression, names, got.Undecided, stored.asked, got.Warnings, err)
		}
		e.Strict = true
		if _, err = s.Select(t.Context(), e, nodes); errors.Is(err, fleet.ErrStrict) != (c.warnings != nil || c.undecided != nil) {
			t.Errorf("strict %s: %v", c.expression, err)
		}
	}
}

// TestReasonsOfPackages names why an inventory does not decide.
func TestReasonsOfPackages(t *testing.T) {
	t.Parallel()
	e, err := fleet.CompileTarget(`older(package("openssl").version, "3.0.15") || package("zsh") != nil || package("bash")`)
	if err != nil {
		t.Fatal(err)
	}
	nodes, stored := packageFleet()
	got, err := fleet.Selector{Inventories: stored.get}.Select(t.Context(), e, nodes)
	want := []fleet.Undecided{
		{Node: "new", Reason: "a value is a package, not true or false"},
		{Node: "none", Reason: "a value is a package, not true or false"},
		{Node: "part", Reason: "its inventory has no version of openssl: versions are missing"},
		{Node: "torn", Reason: "its inventory cannot be read: garbage"},
		{Node: "unstored", Reason: "it has not stored an inventory"},
	}
	if err != nil || !slices.Equal(got.Undecided, want) {
		t.Errorf("%+v, %v", got.Undecided, err)
	}
	lost := errors.New("lost")
	_, err = fleet.Selector{Inventories: func(context.Context, []string) iter.Seq2[model.Inventory, error] {
		return func(yield func(model.Inventory, error) bool) { yield(model.Inventory{}, lost) }
	}}.Select(t.Context(), e, nodes)
	if !errors.Is(err, lost) {
		t.Error(err)
	}
}

// TestWrongPackageExpressions: errors name the mistake and the remedy.
func TestWrongPackageExpressions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`package("openssl").verson == "1"`: "a package has node, name, version, arch and manager; did you mean `version`?",
		`package == "openssl"`:             `package is a function; write package("openssl") != nil`,
		`package("openssl") == "3.0"`:      `package("openssl") is never text`,
		`any(["zsh"], package(#) != nil)`:  "the name of a package is not literal text",
		`pakage("openssl") != nil`:         "did you mean `package`?",
	} {
		if _, err := fleet.CompileTarget(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestVersionOfAPackage: a package in place of its version names the remedy.
func TestVersionOfAPackage(t *testing.T) {
	t.Parallel()
	e, err := fleet.CompileTarget(`older(package("openssl"), "3.0.15")`)
	if err != nil {
		t.Fatal(err)
	}
	nodes, stored := packageFleet()
	got, err := fleet.Selector{Inventories: stored.get}.Select(t.Context(), e, nodes)
	if err != nil || len(got.Undecided) == 0 || !strings.HasSuffix(got.Undecided[0].Reason, `a version is text, not a package: write package("…").version`) {
		t.Errorf("%+v, %v", got.Undecided, err)
	}
}
