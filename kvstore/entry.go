package kvstore

import "time"

// Entry is one assignment in the bucket.
type Entry struct {
	// Key is the key in the bucket, Family.Name.
	Key string `json:"key"`
	// Family is node.<node> or group.<group>.
	Family string `json:"family"`
	// Name is that of the manifest within its family.
	Name string `json:"name"`
	// Revision is the bucket's number for this value; a later value has a higher one.
	Revision uint64 `json:"revision"`
	// Value is a manifest, an assignment document or an envelope; not to be changed.
	Value []byte `json:"value"`
	// Time is when the server stored it.
	Time time.Time `json:"time"`
}

func newEntry(family, name string, m message) Entry {
	return Entry{Key: Key(family, name), Family: family, Name: name, Revision: m.sequence, Value: m.data, Time: m.time}
}
