package archive

import (
	"context"

	"github.com/musterfleet/muster/resources/host"
)

// records is the folder of the records in the state directory.
const records = "archives"

// record is the state of an unpacked archive, in the state directory. With it, muster repeats an extraction
// that a kill interrupted, and knows the checksum of a removed archive. The zero value is no record.
type record struct {
	Archive  string `json:"archive"`
	Checksum string `json:"checksum"`
	// Extracted is set once the archive is unpacked completely.
	Extracted bool `json:"extracted"`
	// Invalid marks content with this checksum that is not an archive.
	Invalid bool `json:"invalid,omitempty"`
}

// isPending reports whether the archive still has to be unpacked.
func (r record) isPending() bool { return r.Archive != "" && !r.Extracted }

// recall returns the record of an archive. A damaged record is a pending extraction, because unpacking once
// more loses nothing.
func recall(h *host.Host, name string) (record, error) {
	r, found, err := host.Recall[record](h, records, name)
	if found && r.Archive != name {
		r = record{Archive: name}
	}

	return r, err
}

// remember writes a record, if there is a state directory.
func remember(ctx context.Context, h *host.Host, r record) error {
	if h.StateDir() == "" {
		return nil
	}

	return h.Remember(ctx, records, r.Archive, r)
}
