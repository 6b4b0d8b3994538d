package file

import (
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource/textdiff"
)

// diff returns the diff of the content, empty for a sensitive resource.
func diff(spec *Spec, state *State) string {
	if spec.Sensitive {
		return ""
	}
	want := &state.want
	before := textdiff.Content{Snippet: want.before, Size: state.Entry.Size, Absent: state.Entry.Kind != files.File, Unreadable: state.hidden()}
	if state.Metadata != nil {
		before.Digest = state.Metadata.Checksum
	}

	return textdiff.Of(spec.Name, before, textdiff.Content{Snippet: want.after, Size: want.size, Digest: want.digest})
}
