package file

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/resource"
)

// The bounds of a diff: what is larger helps nobody who reads it, and has to
// travel in a report.
const (
	maxDiffText  = 64 << 10
	maxDiffLines = 200
	maxDiffBytes = 32 << 10
)

func snippetOf(text string) snippet {
	if len(text) > maxDiffText {
		return snippet{tooLarge: true}
	}

	return snippet{text: text}
}

// readSnippet reads a file for a diff. One that cannot be read is told like one
// that is too large: the diff is a service, and no reason to fail.
func readSnippet(env resource.Env, path string) snippet {
	text, err := env.Host.Read(path, maxDiffText)
	if err != nil {
		return snippet{tooLarge: true}
	}

	return snippet{text: string(text)}
}

// diff gives the change of the content as a bounded unified diff, or a summary
// of what cannot be shown as one; nothing of a sensitive resource.
func diff(spec *Spec, state *State) string {
	if spec.Sensitive {
		return ""
	}
	want := &state.want
	switch {
	case state.Unreadable != nil:
		return summary("unreadable", state)
	case want.before.tooLarge || want.after.tooLarge:
		return summary("too large for a diff", state)
	case !isText(want.before.text) || !isText(want.after.text):
		return summary("binary", state)
	}
	old := spec.Name
	if state.Entry.Kind != host.File {
		old = "/dev/null"
	}
	text, err := udiff.ToUnified(old, spec.Name, want.before.text, udiff.Lines(want.before.text, want.after.text), udiff.DefaultContextLines)
	if err != nil {
		return summary("no diff", state)
	}

	return bound(visible(text))
}

// summary tells the sizes and digests of contents that are not shown.
func summary(what string, state *State) string {
	if state.Entry.Kind != host.File {
		return fmt.Sprintf("%s, %s, %s", what, formatSize(state.want.size), digestWord(state.want.digest))
	}
	size := formatSize(state.want.size)
	if before := formatSize(state.Entry.Size); before != size {
		size = before + " -> " + size
	}

	return fmt.Sprintf("%s, %s, %s -> %s", what, size, found(state), state.want.digest)
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// visible writes what cannot be seen as escapes, control characters and blanks
// that look like others among it: a changed line end can be seen, and a file
// cannot send commands to the terminal that shows its diff.
func visible(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if !hidden(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}

	return b.String()
}

func hidden(r rune) bool {
	return r != '\n' && r != '\t' && !unicode.IsPrint(r)
}

// bound cuts a diff at whole lines and says what was left out.
func bound(text string) string {
	end, lines := 0, 0
	for line := range strings.Lines(text) {
		if lines == maxDiffLines || end+len(line) > maxDiffBytes {
			return text[:end] + fmt.Sprintf("… %d more lines of this diff were left out\n", strings.Count(text[end:], "\n"))
		}
		end, lines = end+len(line), lines+1
	}

	return text
}

// formatSize gives a number of bytes in the unit a reader wants: 512 B, 1.2 MB.
func formatSize(n int64) string {
	const unit = 1000
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, i := float64(n)/unit, 0
	for ; value >= unit && i < 3; i++ {
		value /= unit
	}

	return fmt.Sprintf("%.1f %cB", value, "kMGT"[i])
}
