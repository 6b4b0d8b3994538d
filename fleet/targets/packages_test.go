package targets_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet/targets"
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
		e, err := targets.Compile(c.expression)
		if err != nil {
			t.Error(err)
			continue
		}
		nodes, stored := packageFleet()
		s := targets.Selector{Facts: facts.get, Inventories: stored.get}
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
		if _, err = s.Select(t.Context(), e, nodes); errors.Is(err, targets.ErrStrict) != (c.warnings != nil || c.undecided != nil) {
			t.Errorf("strict %s: %v", c.expression, err)
		}
	}
}

// TestReasonsOfPackages names why an inventory does not decide.
func TestReasonsOfPackages(t *testing.T) {
	t.Parallel()
	e, err := targets.Compile(`older(package("openssl").version, "3.0.15") || package("zsh") != nil || package("bash")`)
	if err != nil {
		t.Fatal(err)
	}
	nodes, stored := packageFleet()
	got, err := targets.Selector{Inventories: stored.get}.Select(t.Context(), e, nodes)
	want := []targets.Undecided{
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
	_, err = targets.Selector{Inventories: func(context.Context, []string) iter.Seq2[model.Inventory, error] {
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
		if _, err := targets.Compile(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestVersionArguments: an argument that is never a version is an error of the expression, which names the function and
// the argument.
func TestVersionArguments(t *testing.T) {
	t.Parallel()
	const write = `; write package("openssl").version`
	for text, want := range map[string]string{
		`older(package("openssl"), "3.0.15")`:              `column 7: argument 1 of older is a package, not a version` + write,
		`newer("3.0.15", package("openssl"))`:              `column 17: argument 2 of newer is a package, not a version` + write,
		`compare(package("openssl"), "3.0.15", "deb") < 0`: `column 9: argument 1 of compare is a package, not a version` + write,
		`upstream(package("openssl")) == "3.0.15"`:         `column 10: argument 1 of upstream is a package, not a version` + write,
		`older(version, 3.1)`:                              `column 16: argument 2 of older is a number, not a version; write it in quotes, such as "1.2"`,
		`older(groups, "1")`:                               `column 7: argument 1 of older is a list, not a version`,
		`!newer(heard, "1")`:                               `column 8: argument 1 of newer is a time, not a version`,
		`older(manifest("motd"), "1")`:                     `column 7: argument 1 of older is a manifest, not a version`,
		`upstream(outbox) == nil`:                          `column 10: argument 1 of upstream is a number, not a version`,
		`older(paused, "1")`:                               `column 7: argument 1 of older is true or false, not a version`,
		`older(version, "1", 2)`:                           `column 21: argument 3 of older is a number, not a version scheme; it is one of deb, rpm, semver`,
	} {
		if _, err := targets.Compile(text); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestVersionsOfANode: the reason for an undecided node names the function, the argument and the problem.
func TestVersionsOfANode(t *testing.T) {
	t.Parallel()
	const word = `: invalid package version: "unknown"`
	web := node("web01", nil, nil)
	web.Version = "unknown"
	facts := &factsOf{facts: map[string]model.NodeFacts{"web01": {Node: "web01", Facts: model.Facts{"list": []any{"1"}, "number": 3.1, "word": "none"}}}}
	for text, want := range map[string]string{
		`older(version, "1.2")`:              `older` + word,
		`newer("1.2", version)`:              `newer` + word,
		`compare(version, "1.2") == 0`:       `compare` + word,
		`older(version, "1.2", "semver")`:    `older: invalid package version: "unknown" is not a semantic version`,
		`older(facts.list, "1.0")`:           `argument 1 of older is a list, not a version`,
		`newer("1.0", facts.number)`:         `argument 2 of newer is a number, not a version`,
		`upstream(facts.list) == "1"`:        `argument 1 of upstream is a list, not a version`,
		`older(facts.word, "1.0")`:           `older: invalid package version: "none"`,
		`any([package("zsh")], older(#, 1))`: `argument 2 of older is a number, not a version`,
	} {
		e, err := targets.Compile(text)
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		got, err := targets.Selector{Facts: facts.get}.Select(t.Context(), e, []model.Node{web})
		if err != nil || len(got.Undecided) != 1 || got.Undecided[0].Reason != want {
			t.Errorf("%s: %+v, %v, want %s", text, got.Undecided, err, want)
		}
	}
}
