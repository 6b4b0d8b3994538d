package files

// Mark identifies the file at a path and its version, as far as the file system shows it. It differs after
// the file is replaced, its mode or owner changes, or its content changes in a later tick of the file
// system's clock. The zero Mark means no file.
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
