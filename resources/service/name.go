package service

import (
	"slices"
	"strings"
)

// maxUnitName is the longest name of a unit that there is.
const maxUnitName = 255

// UnitName gives the full name of the unit that systemd has for a service: what
// has no suffix of a unit gets .service, what a unit's name may not contain is
// escaped.
func UnitName(service string) string {
	unit := strings.NewReplacer("+", `\x2b`, "~", `\x7e`).Replace(service)
	suffixes := []string{".service", ".socket", ".device", ".mount", ".automount", ".swap", ".target", ".path", ".timer", ".slice", ".scope"}
	if !slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(unit, suffix) }) {
		unit += ".service"
	}

	return unit
}
