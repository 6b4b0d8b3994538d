package fleetcmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// maxExamples is of how many keys of a name the flags are written out.
const maxExamples = 3

// ambiguousError is a name that several assignments have, or had.
type ambiguousError struct {
	name string
	keys []string
	// areRemoved is that nothing of that name is assigned any more.
	areRemoved bool
	// hasFlags is that the command has those of Owner.
	hasFlags bool
}

// Error says which there are, and what names one of them.
func (a *ambiguousError) Error() string {
	what, listed := "is ambiguous", a.name
	if a.areRemoved {
		what, listed = "is not assigned, and several of that name were removed", a.name+" --removed"
	}
	flags := ""
	if a.hasFlags {
		flags = FlagsOf(a.keys) + ", or "
	}

	return fmt.Sprintf("%s %s; give %sa full key: %s", a.name, what, flags, SomeKeys(listed, a.keys))
}

// withFlags has the error of an ambiguous name say which flags resolve it.
func withFlags(err error) error {
	var ambiguous *ambiguousError
	if errors.As(err, &ambiguous) {
		ambiguous.hasFlags = true
	}

	return err
}

// FlagsOf returns the flags that tell keys of one name apart, of many those of the first.
func FlagsOf(keys []string) string {
	var out []string
	for _, key := range keys {
		t, _, err := fleet.ParseKey(key)
		switch {
		case err != nil:
		case t.Node != "":
			out = append(out, "--node "+t.Node)
		case t.Group == model.GroupAll:
			out = append(out, "--all")
		default:
			out = append(out, "--group "+t.Group)
		}
	}
	if len(out) > maxExamples {
		out = append(out[:maxExamples], "…")
	}

	return strings.Join(out, ", ")
}

// SomeKeys lists the keys of a name, of many the first; listed are the arguments of muster fleet ls for all.
func SomeKeys(listed string, keys []string) string {
	return print.Some(keys, "see muster fleet ls "+listed)
}

// keysOf returns the keys of assignments.
func keysOf(all []model.Entry) []string {
	keys := make([]string, len(all))
	for i, e := range all {
		keys[i] = e.Key
	}

	return keys
}
