package kvstore

import "github.com/musterfleet/muster/model"

// AssignmentKey splits the key of an assignment. ok is false for any other key.
func AssignmentKey(key string) (family, name string, ok bool) {
	family, name, ok = model.SplitKey(key)

	return family, name, ok && model.CheckName(name) == nil
}

// IsInvalidKey reports whether a key is not the key of an assignment. No node reads such a key.
func IsInvalidKey(key string) bool {
	_, _, ok := AssignmentKey(key)

	return !ok
}
