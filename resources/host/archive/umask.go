package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// umask returns the umask of this process; only here it can be read without
// setting it.
func umask() (fs.FileMode, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("could not read the umask: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if text, found := strings.CutPrefix(line, "Umask:"); found {
			mask, err := strconv.ParseUint(strings.TrimSpace(text), 8, 32)
			return fs.FileMode(mask), err
		}
	}

	return 0, errors.New("could not read the umask: it is not in /proc/self/status")
}
