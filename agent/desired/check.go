package desired

import (
	"path/filepath"
	"strings"

	"github.com/musterfleet/muster/resources/host"
)

// CheckAssignment checks the stored assignment at a path. It returns the reason why OpenSet would ignore it,
// or model.Problems if its last good version would be rejected.
func CheckAssignment(path string) error {
	r, err := (&assignmentStore{dir: filepath.Dir(path)}).read(strings.TrimSuffix(filepath.Base(path), ".json"))
	if err != nil || r.Good == nil {
		return err
	}
	_, problems := parse(*r.Good)

	return problems.Err()
}

// CheckBucket checks the stored state of the bucket.
func CheckBucket(path string) error {
	_, err := host.ReadRecord[bucketRecord](path)

	return err
}
