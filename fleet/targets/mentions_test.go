package targets_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
)

// TestUnknownInResults: node, manifest and type of a result are compared with the fleet.
func TestUnknownInResults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`manifest == "bse"`:                                {`no node has the manifest "bse"; did you mean group.web.base?`},
		`manifest == "base"`:                               {`no node has the manifest "base"; did you mean group.web.base?`},
		`manifest in ["node.n1.x", "group.web.bsae"]`:      {`no node has the manifest "node.n1.x"`, `no node has the manifest "group.web.bsae"; did you mean group.web.base?`},
		`type == "servce" && outcome == "failed"`:          {`"servce" is not a resource type; did you mean service?`},
		`"ser" + "vce" != type`:                            {`"servce" is not a resource type; did you mean service?`},
		`node == "n4"`:                                     {`no node has the name "n4"; did you mean n1?`},
		`manifest == "group.web.base"`:                     nil,
		`manifest endsWith ".bse"`:                         nil,
		`type == "service" && name == "x"`:                 nil,
		`provider == "atp"`:                                {`"atp" is not a provider; did you mean apt?`},
		`resource == "servce#nginx"`:                       {`"servce" is not a resource type; did you mean service?`},
		`resource in ["service#x", "nginx"]`:               {`"nginx" is not a resource type`},
		`resource == "service#nginx" && provider == "apt"`: nil,
		`type in ["file", "service"]`:                      nil,
	} {
		f := targets.NewFinder(mentionsIn(t, targets.CompileResults, text))
		f.AddNode(&model.Node{NodeState: model.NodeState{Node: "n1", Manifests: map[string]model.ManifestState{"group.web.base": {}}}})
		f.Add(targets.SpaceType, "service")
		f.Add(targets.SpaceType, "file")
		f.Add(targets.SpaceProvider, "apt")
		if got := f.Warnings(1); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestUnknownInPackages: name, manager and architecture are compared with the inventories that were read.
func TestUnknownInPackages(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`name == "opensl"`:                                        {`none of 1 inventories has the package "opensl"; did you mean openssl?`},
		`any(["openssl", "zsh"], # == name)`:                      {`none of 1 inventories has the package "zsh"`},
		`manager == "atp"`:                                        {`none of 1 inventories has packages of the manager "atp"; known: deb`},
		`arch in ["amd64", "amd46"]`:                              {`none of 1 inventories has packages of the architecture "amd46"; did you mean amd64?`},
		`lower(name) == "OpenSSL"`:                                {`none of 1 inventories has the package "OpenSSL"`},
		`upper(name) == "OPENSSL"`:                                nil,
		`name startsWith "opensl"`:                                nil,
		`name == "openssl" && manager == "deb" && version == "1"`: nil,
	} {
		f := targets.NewFinder(mentionsIn(t, targets.CompilePackages, text))
		if got := f.Warnings(2); got != nil {
			t.Errorf("%s without inventories: %q", text, got)
		}
		f.AddPackages([]model.Package{{Name: "openssl", Arch: "amd64", Manager: "deb"}, {Name: "base", Arch: "all", Manager: "deb"}})
		if got := f.Warnings(2); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestEmptyListsHideNothing: elements of a list that is empty on all nodes are unknown, and one node with an element is enough.
func TestEmptyListsHideNothing(t *testing.T) {
	t.Parallel()
	set := mentionsIn(t, targets.Compile, `any(facts.alerts, .severty == "high")`)
	empty, full := model.Facts{"alerts": []any{}}, model.Facts{"alerts": []any{map[string]any{}, map[string]any{"severity": "low"}}}
	for want, facts := range map[string][]model.Facts{
		"": {empty, empty},
		"no node has facts.alerts[].severty; did you mean facts.alerts[].severity?": {empty, full, empty},
	} {
		f := targets.NewFinder(set)
		for _, one := range facts {
			f.AddFacts(one)
		}
		if got := strings.Join(f.Warnings(len(facts)), "; "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestColumns: labels, facts and manifests of columns are names.
func TestColumns(t *testing.T) {
	t.Parallel()
	got := targets.InColumns([]string{"node", "labels.rack", "facts.host.os", "manifest.base.status", "labels.rack", "manifests.failed", ""})
	if text := fmt.Sprint(got.Of(targets.SpaceLabel), got.Of(targets.SpaceManifest), got.Facts, len(got.Names)); text != "[rack] [base] [facts.host.os] 2" {
		t.Error(text)
	}
}

// TestCostlyExpressions: combinations of constants do not multiply without limit.
func TestCostlyExpressions(t *testing.T) {
	t.Parallel()
	either := `(paused ? "a" : "b")`
	for _, text := range []string{
		"group(" + strings.Repeat(either+" + ", 60) + `"c")`,
		"facts" + strings.Repeat("["+either+"]", 60) + " == 1",
		`any(["a", "b"], ` + strings.Repeat(`any(["a", "b", #, #, #, #], `, 30) + "group(#)" + strings.Repeat(")", 31),
	} {
		if set := mentionsIn(t, targets.Compile, text); len(set.Names) > 1000 || len(set.Facts) > 1000 {
			t.Errorf("%d names, %d paths", len(set.Names), len(set.Facts))
		}
	}
}

// TestLongLists: a finder visits a limited number of elements.
func TestLongLists(t *testing.T) {
	t.Parallel()
	list := make([]any, 100_000)
	for i := range list {
		list[i] = map[string]any{}
	}
	find := func(nodes int) []string {
		f := targets.NewFinder(mentionsIn(t, targets.Compile, "any(facts.list, .none == 1)"))
		for range nodes {
			f.AddFacts(model.Facts{"list": list})
		}

		return f.Warnings(nodes)
	}
	if few, many := find(3), find(200); len(few) != 1 || len(many) != 0 {
		t.Errorf("%q, %q", few, many)
	}
}

// BenchmarkFinder looks for names in 10,000 nodes: most of them are known.
func BenchmarkFinder(b *testing.B) {
	nodes, list := make([]model.Node, 10_000), make([]string, 300)
	for i := range nodes {
		nodes[i].Node, nodes[i].Groups, nodes[i].Labels = fmt.Sprintf("node%05d", i), []string{"web", "eu"}, map[string]string{"rack": "a3"}
	}
	for i := range list {
		list[i] = fmt.Sprintf("%q", fmt.Sprintf("nodes%d", i))
	}
	for name, text := range map[string]string{"known": `group("web") && labels.rack == "a3"`, "one": `group("wbe")`, "many": "node in [" + strings.Join(list, ",") + "]"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f := targets.NewFinder(mentionsIn(b, targets.Compile, text))
				for i := range nodes {
					f.AddNode(&nodes[i])
				}
				f.Warnings(len(nodes))
			}
		})
	}
}

// mentionsIn returns the names in a valid expression.
func mentionsIn[E interface{ Mentions() targets.Mentions }](t testing.TB, compile func(string) (E, error), text string) targets.Mentions {
	t.Helper()
	e, err := compile(text)
	if err != nil {
		t.Fatalf("%.100s: %v", text, err)
	}

	return e.Mentions()
}
