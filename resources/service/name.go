package service

import "strings"

// maxUnitName is the longest unit name of systemd.
const maxUnitName = 255

// UnitName returns the full unit name of a service: it adds .service to a name without a unit suffix,
// and escapes characters that are invalid in unit names.
func UnitName(service string) string {
	bare, suffix := cutSuffix(service)

	return strings.NewReplacer("+", `\x2b`, "~", `\x7e`).Replace(bare) + suffix
}

// cutSuffix splits a service name into the bare name and its unit suffix,
// .service by default.
func cutSuffix(service string) (bare, suffix string) {
	for _, suffix := range []string{".socket", ".device", ".mount", ".automount", ".swap", ".target", ".path", ".timer", ".slice", ".scope"} {
		if bare, found := strings.CutSuffix(service, suffix); found {
			return bare, suffix
		}
	}

	return strings.TrimSuffix(service, ".service"), ".service"
}
