package desired

import (
	"path/filepath"
	"strings"

	"github.com/musterfleet/muster/resources/host"
)

// CheckAssignment reads the stored assignment at a path. The error is why Open would leave
// it out, or model.Problems where its last good version would be rejected.
func CheckAssignment(path string) error {
	r, err := (&assignmentStore{dir: filepath.Dir(path)}).read(strings.TrimSuffix(filepath.Base(path), ".json"))
	if err != nil || r.Good == nil {
		return err
	}
	_, problems := parse(*r.Good)

	return problems.Err()
}

// CheckBucket reads what is stored of the bucket.
func CheckBucket(path string) error {
	_, err := host.ReadRecord[bucketRecord](path)

	return err
}
