package files

// Mark tells what is at a path from anything else that was or will be there, as far as the
// file system shows it: it is another one once somebody replaces the file or changes
// its mode or owner, or its content in another tick of the clock of the file system.
// The zero Mark is nothing.
type Mark struct {
	id       fileID
	stamp    stamp
	mode     uint32
	uid, gid uint32
}

// Mark returns the mark of the entry.
func (e Entry) Mark() Mark {
	return Mark{id: e.id, stamp: e.stamp, mode: e.Mode, uid: e.UID, gid: e.GID}
}
