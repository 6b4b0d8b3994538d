package service

import "strings"

// maxUnitName is the longest name of a unit that there is.
const maxUnitName = 255

// UnitName returns the full name of the unit that systemd has for a service: what
// has no suffix of a unit gets .service, what a unit's name may not contain is
// escaped.
func UnitName(service string) string {
	bare, suffix := cutSuffix(service)

	return strings.NewReplacer("+", `\x2b`, "~", `\x7e`).Replace(bare) + suffix
}

// cutSuffix returns the name of a service without the suffix of a unit, and the
// suffix that it has or stands for.
func cutSuffix(service string) (bare, suffix string) {
	for _, suffix := range []string{".socket", ".device", ".mount", ".automount", ".swap", ".target", ".path", ".timer", ".slice", ".scope"} {
		if bare, found := strings.CutSuffix(service, suffix); found {
			return bare, suffix
		}
	}

	return strings.TrimSuffix(service, ".service"), ".service"
}
