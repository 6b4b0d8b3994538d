package kvstore

import "github.com/musterfleet/muster/model"

// AssignmentKey splits the key of an assignment; ok is false for a key of another
// form.
func AssignmentKey(key string) (family, name string, ok bool) {
	family, name, ok = model.SplitKey(key)

	return family, name, ok && model.CheckName(name) == nil
}

// IsInvalidKey reports whether a key is neither that of an assignment nor of an
// index: no node reads it.
func IsInvalidKey(key string) bool {
	_, name, ok := model.SplitKey(key)

	return !ok || (name != IndexName && model.CheckName(name) != nil)
}
