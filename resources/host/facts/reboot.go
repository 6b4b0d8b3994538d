package facts

import (
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// needsReboot reports whether a package asked for a reboot, as on Debian, or
// another kernel than the running one was installed since boot, as where kernels
// lie beside their modules.
func needsReboot(root, running string, boot time.Time) (bool, error) {
	if _, err := os.Stat(filepath.Join(root, "run/reboot-required")); err == nil {
		return true, nil
	}
	kernels, err := filepath.Glob(filepath.Join(root, "lib/modules/*/vmlinuz"))
	for _, path := range kernels {
		info, err := os.Lstat(path)
		if err != nil || filepath.Base(filepath.Dir(path)) == running {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && time.Unix(stat.Ctim.Unix()).After(boot) {
			return true, nil
		}
	}

	return false, err
}
