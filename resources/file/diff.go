package file

import (
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// diff returns the diff of the content, empty for a sensitive resource.
func diff(spec *Spec, state *State) string {
	if spec.Sensitive {
		return ""
	}
	want := &state.want
	before := resource.DiffContent{Snippet: want.before, Size: state.Entry.Size, Absent: state.Entry.Kind != files.File, Unreadable: state.hidden()}
	if state.Metadata != nil {
		before.Digest = state.Metadata.Checksum
	}

	return resource.Diff(spec.Name, before, resource.DiffContent{Snippet: want.after, Size: want.size, Digest: want.digest})
}
