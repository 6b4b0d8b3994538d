package document

import (
	"bytes"

	"github.com/musterfleet/muster/model"
)

// maxMarks is how many values a document may seem to hold. The parser needs
// some 200 bytes and 2 microseconds for each, however short it is: without a
// limit 16 MiB of `[],[],[],` would take a gigabyte.
const maxMarks = 1_000_000

// checkMarks refuses a document of too many values before it is parsed. It
// looks at the characters that separate values, wherever they are but for
// literal and folded blocks.
func checkMarks(name string, data []byte) model.Problems {
	if countMarks(data) <= maxMarks {
		return nil
	}
	total := 0
	var blocks blockScan
	for line := range bytes.Lines(data) {
		if inside, _ := blocks.next(line); inside {
			continue
		}
		if total += countMarks(line); total > maxMarks {
			return model.ProblemAt(model.Position{File: name}, "split it, or deliver large files beside the manifest, as source, in a bundle",
				"the document seems to hold more than the %d values that are allowed", maxMarks)
		}
	}

	return nil
}

// countMarks counts what can separate two values.
func countMarks(data []byte) int {
	n := 0
	for i, c := range data {
		switch c {
		case ',', '[', '{', '?':
			n++
		case ':', '-':
			if i+1 == len(data) || data[i+1] <= ' ' || data[i+1] == '"' || data[i+1] == '{' || data[i+1] == '[' {
				n++
			}
		}
	}

	return n
}
