package pkg

import (
	"fmt"
	"os"
	"slices"

	"github.com/musterfleet/muster/model"
)

// The priorities of a package manager: on a platform that is its own, on one
// that nobody knows, and on one that is another's, where it has to be asked for.
const (
	priorityOwn     = 1
	priorityUnknown = 50
	priorityForeign = 99
)

// Manageable reports whether a package manager is there, and with what priority:
// on a platform of its own families the best, on one of the others the worst. The
// error names the program that is missing.
func Manageable(facts model.Facts, programs, own, others []string) (bool, int, error) {
	for _, program := range programs {
		if _, err := os.Stat(program); err != nil {
			return false, 0, fmt.Errorf("there is no %s", program)
		}
	}
	host, _ := facts["host"].(map[string]any)
	info, _ := host["info"].(map[string]any)
	family, _ := info["platformFamily"].(string)
	switch {
	case slices.Contains(own, family):
		return true, priorityOwn, nil
	case slices.Contains(others, family):
		return true, priorityForeign, nil
	default:
		return true, priorityUnknown, nil
	}
}

// DebianFamilies and RedHatFamilies are the values of the fact
// host.info.platformFamily whose packages apt and dnf manage.
func DebianFamilies() []string { return []string{"debian"} }

// RedHatFamilies are those of dnf.
func RedHatFamilies() []string { return []string{"rhel", "fedora"} }
