package targets_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
)

// asTexts is the end of the warning about a comparison of texts.
const asTexts = ` character by character ("9" is more than "10"); use older or newer for versions, and a number without quotes for numbers`

// TestUnknownNames: a name that no node has is a warning, and an error for a strict expression.
func TestUnknownNames(t *testing.T) {
	web := node("web01", []string{"web"}, nil)
	web.Labels = map[string]string{"rack": "a3"}
	db := node("db01", []string{"db"}, nil)
	facts := &factsOf{facts: map[string]model.NodeFacts{
		"web01": {Node: "web01", Facts: model.Facts{"package": map[string]any{"openssl": "3.0.14"}, "role": "web"}},
		"db01":  {Node: "db01", Facts: model.Facts{"role": "db", "disk": map[string]any{"size": 4.0}}},
	}}
	for text, want := range map[string][]string{
		`facts.package.openssl == "3.0.14"`:                        nil,
		`facts["package"].openssl != nil`:                          nil,
		`facts.disk.size > 3`:                                      nil,
		`facts.packages.openssl != nil`:                            {"no node has facts.packages; did you mean facts.package?"},
		`facts.packages.openssl != nil || facts.packages.x != nil`: {"no node has facts.packages; did you mean facts.package?"},
		`facts.package.opensl != nil`:                              {"no node has facts.package.opensl; did you mean facts.package.openssl?"},
		`facts.role.name == "x"`:                                   {"no node has facts.role.name"},
		`node == "web01" && facts.packages != nil`:                 {"none of 1 facts documents has facts.packages; did you mean facts.package?"},
		`labels.rak == "a3"`:                                       {"no node has labels.rak; did you mean labels.rack?"},
		`labels["rack"] == "a3"`:                                   nil,
		`group("webb")`:                                            {`no node is in the group "webb"; did you mean web?`},
		`"webb" in groups`:                                         {`no node is in the group "webb"; did you mean web?`},
		`group("web") || group("all")`:                             nil,
		`facts.package.openssl < "3.0.15"`:                         {"< `3.0.15` compares texts" + asTexts},
		`version > "1.2"`:                                          {"> `1.2` compares texts" + asTexts},
		`age(heard) < "1h"`:                                        nil,
		`older(facts.package.openssl, "3.0.15")`:                   nil,
	} {
		e, err := targets.Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		s := targets.Selector{Facts: facts.get}
		found, err := s.Select(t.Context(), e, []model.Node{web, db})
		if err != nil || !slices.Equal(found.Warnings, want) {
			t.Errorf("%s: %q, %v, want %q", text, found.Warnings, err, want)
		}
		e.Strict = true
		_, err = s.Select(t.Context(), e, []model.Node{web, db})
		if errors.Is(err, targets.ErrStrict) != (want != nil) || err != nil && !strings.Contains(err.Error(), want[0]) {
			t.Errorf("strict %s: %v", text, err)
		}
	}
}

// questioned returns two nodes, their facts, inventories and statuses.
func questioned() ([]model.Node, targets.Selector) {
	n1, n2 := node("n1", []string{"web"}, nil), node("n2", []string{"db"}, nil)
	n1.Host, n1.Labels = "n1.example.net", map[string]string{"rack": "a3"}
	cpu := map[string]any{"info": []any{map[string]any{"vendorId": "x", "flags": []any{"sse"}}}, "count": 4.0}
	facts := &factsOf{facts: map[string]model.NodeFacts{
		"n1": {Node: "n1", Facts: model.Facts{"cpu": cpu, "role": "web"}},
		"n2": {Node: "n2", Facts: model.Facts{"role": "db"}},
	}}
	stored := &inventoriesOf{all: map[string]model.Inventory{}}
	for _, name := range []string{"n1", "n2"} {
		stored.all[name] = model.Inventory{Node: name, Packages: []model.Package{{Name: "openssl", Version: "3.0.14", Arch: "amd64", Manager: "deb"}}}
	}
	statuses := func(n model.Node) []fleet.RolloutStatus {
		return []fleet.RolloutStatus{{Node: n.Node, Key: "group." + n.Groups[0] + ".base", Status: fleet.StatusUpToDate}}
	}

	return []model.Node{n1, n2}, targets.Selector{Facts: facts.get, Inventories: stored.get, Statuses: statuses}
}

// TestUnknownNamesInAnyForm: a name that no node has is a warning in every form of a comparison with a constant.
func TestUnknownNamesInAnyForm(t *testing.T) {
	t.Parallel()
	const (
		wbe   = `no node is in the group "wbe"; did you mean web?`
		rak   = "no node has labels.rak; did you mean labels.rack?"
		n4    = `no node has the name "n4"; did you mean n1?`
		bse   = `no node has the manifest "bse"; did you mean base?`
		below = "no node has facts.cpu.info[0].vendorid; did you mean facts.cpu.info[0].vendorId?"
	)
	for text, want := range map[string][]string{
		`"wbe" in groups`:                                {wbe},
		`!("wbe" in groups)`:                             {wbe},
		`"wbe" not in groups`:                            {wbe},
		`any(groups, # == "wbe")`:                        {wbe},
		`all(groups, # != "wbe")`:                        {wbe},
		`none(groups, "wbe" == #)`:                       {wbe},
		`count(groups, # == "wbe") > 0`:                  {wbe},
		`groups | any(# == "wbe")`:                       {wbe},
		`any(groups, # in ["web", "wbe"])`:               {wbe},
		`groups[0] == "wbe"`:                             {wbe},
		`groups[0] in ["web", "wbe"]`:                    {wbe},
		`groups == ["wbe"]`:                              {wbe},
		`groups != ["web", "wbe"]`:                       {wbe},
		`["wbe"] == groups`:                              {wbe},
		`group("w" + "b" + "e")`:                         {wbe},
		`!group("wbe")`:                                  {wbe},
		`group(paused ? "wbe" : "web")`:                  {wbe},
		`group(lower("WBE"))`:                            {wbe},
		`any(["web", "wbe"], group(#))`:                  {wbe},
		`all(["web", "wbe"], # in groups)`:               {wbe},
		`upper(groups[0]) == "WBE"`:                      {`no node is in the group "WBE"`},
		`any(groups, any(["wbe"], # in groups))`:         {wbe},
		`any(groups, any(["x"], true) && # == "wbe")`:    {wbe},
		`labels.rak == "a3"`:                             {rak},
		`labels.rak != "a3"`:                             {rak},
		`labels["r" + "ak"] == "a3"`:                     {rak},
		`labels?.rak == "a3"`:                            {rak},
		`"rak" in labels`:                                {rak},
		`!("rak" in labels)`:                             {rak},
		`any(["rak"], labels[#] == "a3")`:                {rak},
		`facts.cpu.info[0].vendorid == "x"`:              {below},
		`facts["cpu"]["in" + "fo"][0].vendorid == "x"`:   {below},
		`any(facts.cpu.info, .vendorid == "x")`:          {"no node has facts.cpu.info[].vendorid; did you mean facts.cpu.info[].vendorId?"},
		`any(facts.cpu.info, "vendorid" in #)`:           {"no node has facts.cpu.info[].vendorid; did you mean facts.cpu.info[].vendorId?"},
		`facts.cpu.info[3].vendorId == "x"`:              {"no node has facts.cpu.info[3]"},
		`facts.cpu.info[-1].vendorId == "x"`:             {"no node has facts.cpu.info[-1]"},
		`facts.cpu.info.vendorId == "x"`:                 {"no node has facts.cpu.info.vendorId"},
		`facts.cpu[0] == "x"`:                            {"no node has facts.cpu[0]"},
		`"infos" in facts.cpu`:                           {"no node has facts.cpu.infos; did you mean facts.cpu.info?"},
		`len(facts.cpu.infos) > 3`:                       {"no node has facts.cpu.infos; did you mean facts.cpu.info?"},
		`manifest("bse").status == "failed"`:             {bse},
		`manifest("b" + "se").revision < 3`:              {bse},
		`any(["base", "bse"], manifest(#).revision > 0)`: {bse},
		`node == "n4"`:                                   {n4},
		`"n4" != node`:                                   {n4},
		`node in ["n1", "n4"]`:                           {n4},
		`not (node in ["n1", "n4"])`:                     {n4},
		`"n4" in [node]`:                                 {n4},
		`upper(node) == "N4"`:                            {`no node has the name "N4"`},
		`host == "n4.example.net"`:                       {`no node has the host "n4.example.net"; did you mean n1.example.net?`},
		`package("openssl").manager == "atp"`:            {`no node has packages of the manager "atp"; known: deb`},
		`package("openssl").arch != "amd46"`:             {`no node has packages of the architecture "amd46"; did you mean amd64?`},
		`package("opensl") == nil`:                       {`no node has the package "opensl"; did you mean openssl?`},

		`state == "fai" + "ld"`:                        {"state is never `faild`; did you mean `failed`?"},
		`any(["ok", "faild"], # == state)`:             {"state is never `faild`; did you mean `failed`?"},
		`lower(state) == "faild"`:                      {"state is never `faild`; did you mean `failed`?"},
		`manifest("base").outcome == "sta" + "bel"`:    {"the outcome of a manifest is never `stabel`; did you mean `stable`?"},
		`upper(manifest("base")["status"]) == "FALED"`: {"the status of a manifest is never `FALED`; it is one of up-to-date, failed, overridden, not-applicable, rejected, pending, unreachable, unreadable, unassigned"},
		`upper(state) == "FAI" + "LED"`:                nil,
		`any(["ok", "failed"], # == state)`:            nil,
		`manifest("base").status == "" + ""`:           nil,
		`node matches "^n4"`:                           nil, `node startsWith "n4"`: nil, `node endsWith "4"`: nil, `node contains "4"`: nil, `any(groups, # startsWith "wb")`: nil,
		`node in ["n1", "n2"]`: nil, `node != "n1"`: nil, `upper(node) == "N1"`: nil, `lower(trim(host)) == "n1.example.net"`: nil, `host == ""`: nil,
		`len(groups) == 0`: nil, `groups == []`: nil, `groups == ["web"]`: nil, `any(groups, # == "web")`: nil, `group("all")`: nil, `group("w" + "eb")`: nil,
		`(groups[0] ?? "none") == "none"`: nil, `(facts.role ?? node) == "db"`: nil, `(paused ? host : node) == "n1"`: nil,
		`"rack" in labels`: nil, `labels.rack == "a4"`: nil, `labels.rack in ["b1", "b2"]`: nil, `any(["a4"], labels.rack == #)`: nil,
		`facts.cpu.info[0].vendorId == "y"`: nil, `any(facts.cpu.info, .vendorId == "y")`: nil, `any(facts.cpu.info, any(.flags, # == "avx"))`: nil,
		`"avx" in facts.cpu.info[0].flags`: nil, `"info" in facts.cpu`: nil, `facts.cpu[facts.role] == 1`: nil, `facts.role == "wbe"`: nil,
		`manifest("base").status == "failed"`: nil, `state == "failed"`: nil, `message == "n4"`: nil, `version == "9.9.9"`: nil,
		`package("openssl").manager == "deb"`: nil, `package("openssl").version == "1"`: nil, `paused == true`: nil, `any(groups, # == node)`: nil,
	} {
		e, err := targets.Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		nodes, s := questioned()
		found, err := s.Select(t.Context(), e, nodes)
		if err != nil || !slices.Equal(found.Warnings, want) {
			t.Errorf("%s: %q, %v, want %q", text, found.Warnings, err, want)
		}
	}
}

// TestManyUnknownNames: only the first unknown names are in warnings.
func TestManyUnknownNames(t *testing.T) {
	t.Parallel()
	names := make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprintf("%q", fmt.Sprintf("unknown%02d", i))
	}
	e, err := targets.Compile("node in [" + strings.Join(names, ", ") + "]")
	if err != nil {
		t.Fatal(err)
	}
	nodes, s := questioned()
	found, err := s.Select(t.Context(), e, nodes)
	if err != nil || len(found.Warnings) != 11 || found.Warnings[0] != `no node has the name "unknown00"` || found.Warnings[10] != `no node has 90 more of these names` {
		t.Errorf("%q, %v", found.Warnings, err)
	}
}

// TestStrictNeedsAllNodes: nodes that cannot be evaluated fail a strict expression.
func TestStrictNeedsAllNodes(t *testing.T) {
	t.Parallel()
	nodes, s := questioned()
	n3, n4 := node("n3", nil, nil), node("n4", nil, nil)
	n4.Unreadable = "garbage"
	nodes = append(nodes, n3, n4)
	for text, want := range map[string]string{
		`facts.role == "web"`:       "2 of 4 nodes sent no facts",
		`package("openssl") != nil`: "2 of 4 nodes sent no inventory",
		`labels.rack == "a3"`:       "cannot tell whether 1 of 4 nodes match: its state cannot be read: garbage",
		`node == "n3" || node in ["n1", "n2", "n4"] && facts.role == "x"`: "1 of 4 nodes sent no facts",
		`node != "n3"`: "",
	} {
		e, err := targets.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Select(t.Context(), e, nodes); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		e.Strict = true
		_, err = s.Select(t.Context(), e, nodes)
		if errors.Is(err, targets.ErrStrict) != (want != "") || err != nil && !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestVersionsInTargets: versions compare as versions, a missing version is neither older nor newer,
// and a node with an invalid version is undecided.
func TestVersionsInTargets(t *testing.T) {
	n := node("web01", nil, nil)
	facts := &factsOf{facts: map[string]model.NodeFacts{"web01": {Node: "web01", Facts: model.Facts{"v": "3.0.9", "deb": "1:3.0.15-1~deb12u1", "word": "none", "list": []any{"1"}}}}}
	for text, want := range map[string]string{
		`older(facts.v, "3.0.15")`:                               "matches",
		`newer(facts.v, "3.0.15")`:                               "no",
		`compare(facts.v, "3.0.9") == 0`:                         "matches",
		`compare(facts.v, "v3.0.10", "semver") == -1`:            "matches",
		`older(facts.deb, "3.0.15", "deb")`:                      "no",
		`upstream(facts.deb) == "3.0.15"`:                        "matches",
		`newer("3.0.15-1~deb12u1", "3.0.15", "deb")`:             "matches",
		`older("1.0~rc1-1", "1.0-1", "rpm")`:                     "matches",
		`older(facts.missing, "1") || newer(facts.missing, "1")`: "no",
		`compare(facts.missing, "1") == -1`:                      "no",
		`older(facts.word, "1.0")`:                               "undecided",
		`older(facts.list, "1.0")`:                               "undecided",
		`older(facts.v, "3", "semver")`:                          "undecided",
	} {
		e, err := targets.Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		found, err := targets.Selector{Facts: facts.get}.Select(t.Context(), e, []model.Node{n})
		got := "no"
		switch {
		case err != nil:
			got = err.Error()
		case len(found.Undecided) > 0:
			got = "undecided"
		case len(found.Nodes) > 0:
			got = "matches"
		}
		if got != want {
			t.Errorf("%s: %s, want %s (%v)", text, got, want, found.Undecided)
		}
	}
	if _, err := targets.Compile(`older(version, "1", "dpkg")`); err == nil || !strings.Contains(err.Error(), "unknown version scheme") {
		t.Errorf("an unknown scheme: %v", err)
	}
}
