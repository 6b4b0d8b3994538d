package fleet_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet"
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
		e, err := fleet.CompileTarget(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		s := fleet.Selector{Facts: facts.get}
		found, err := s.Select(t.Context(), e, []model.Node{web, db})
		if err != nil || !slices.Equal(found.Warnings, want) {
			t.Errorf("%s: %q, %v, want %q", text, found.Warnings, err, want)
		}
		e.Strict = true
		_, err = s.Select(t.Context(), e, []model.Node{web, db})
		if errors.Is(err, fleet.ErrStrict) != (want != nil) || err != nil && !strings.Contains(err.Error(), want[0]) {
			t.Errorf("strict %s: %v", text, err)
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
		e, err := fleet.CompileTarget(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		found, err := fleet.Selector{Facts: facts.get}.Select(t.Context(), e, []model.Node{n})
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
	if _, err := fleet.CompileTarget(`older(version, "1", "dpkg")`); err == nil || !strings.Contains(err.Error(), "unknown version scheme") {
		t.Errorf("an unknown scheme: %v", err)
	}
}
