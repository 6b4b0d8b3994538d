package writers

// Writer is a process that was seen.
type Writer = writer

// How a writer was found.
const (
	Fanotify = byFanotify
	Open     = byOpenFile
)

// Found returns what Seen has words for.
func (l *Listener) Found() []Writer { return l.writers() }
