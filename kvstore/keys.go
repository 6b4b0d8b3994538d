package kvstore

import "github.com/musterfleet/muster/model"

// assignmentKey takes the key of a manifest apart; ok is false for one that can
// be no manifest's.
func AssignmentKey(key string) (family, name string, ok bool) {
	family, name, ok = model.SplitKey(key)

	return family, name, ok && model.CheckName(name) == nil
}

// isInvalidKey says that what is put under a key is for nobody.
func IsInvalidKey(key string) bool {
	_, name, ok := model.SplitKey(key)

	return !ok || (name != IndexName && model.CheckName(name) != nil)
}
