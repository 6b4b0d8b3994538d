package typetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// describe checks what help texts, schemas and documentation are made of.
func describe(typ *resource.Type) []string {
	var broken []string
	missing := func(what, value string) {
		if value == "" {
			broken = append(broken, "the type has no "+what)
		}
	}
	missing("name", typ.Name)
	missing("summary", typ.Summary)
	missing("help for its name", typ.NameHelp)
	for _, p := range typ.Properties {
		missing("help for its property "+p.Key, p.Help)
	}
	if len(typ.Providers) == 0 {
		broken = append(broken, "the type has no provider")
	}
	if typ.NewState() == nil || typ.New() == nil {
		broken = append(broken, "the type gives no empty state or no empty properties")
	}
	if typ.New() == typ.New() {
		broken = append(broken, "two resources share their properties")
	}
	if typ.Reads == 0 {
		broken = append(broken, "the type does not say what its states describe")
	}
	if (typ.Outputs != nil) != (len(typ.Info.Outputs) > 0) {
		broken = append(broken, "the outputs and what the type says of them do not go together")
	}
	for _, output := range typ.Info.Outputs {
		missing("name for an output", output.Name)
		missing("help for its output "+output.Name, output.Help)
	}
	if len(typ.Ensures) == 0 {
		missing("help for ensure, which may be anything", typ.EnsureHelp)
	}
	if compact := slices.Compact(slices.Sorted(slices.Values(typ.Providers))); len(compact) != len(typ.Providers) {
		broken = append(broken, "two providers have one name")
	}
	_, problems := resource.Decode(typ, Value(Properties{}), model.Position{})
	if !errors.Is(problems.Err(), model.ErrResourceNameRequired) {
		broken = append(broken, fmt.Sprintf("a resource without a name is accepted: %v", problems))
	}

	return broken
}
