package fleetcmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// maxExamples is the maximum number of keys with written-out flags in a message.
const maxExamples = 3

// ambiguousError reports a name that several assignments have, or had.
type ambiguousError struct {
	name string
	keys []string
	// areRemoved: all assignments of that name were removed.
	areRemoved bool
	// hasFlags: the command has the flags of Owner.
	hasFlags bool
}

// Error lists the keys, and how to name one of them.
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

// withFlags adds the flags that resolve an ambiguous name to its error.
func withFlags(err error) error {
	var ambiguous *ambiguousError
	if errors.As(err, &ambiguous) {
		ambiguous.hasFlags = true
	}

	return err
}

// FlagsOf returns the flags that distinguish keys of one name, for at most the first maxExamples keys.
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

// SomeKeys lists the first keys of a name; listed are the arguments of muster fleet ls that list them all.
func SomeKeys(listed string, keys []string) string {
	return print.Some(keys, "see muster fleet ls "+listed)
}

// keysOf returns the keys of the assignments.
func keysOf(all []model.Entry) []string {
	keys := make([]string, len(all))
	for i, e := range all {
		keys[i] = e.Key
	}

	return keys
}
