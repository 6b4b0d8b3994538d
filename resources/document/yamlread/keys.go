package yamlread

import "github.com/musterfleet/muster/model"

// Keys detects duplicate keys of a mapping. It compares the keys of small mappings and indexes
// large ones.
type Keys struct {
	// few are the first keys, until index contains all keys.
	few   [indexedKeys]keyOffset
	count int
	index map[string]uint32
}

// keyOffset is a key and its offset.
type keyOffset struct {
	key string
	at  uint32
}

const indexedKeys = 12

// Find returns the offset of a key that was added.
func (s *Keys) Find(key string) (at uint32, have bool) {
	if s.index != nil {
		at, have = s.index[key]
		return at, have
	}
	for _, k := range s.few[:s.count] {
		if k.key == key {
			return k.at, true
		}
	}

	return 0, false
}

// Has reports whether a key was added.
func (s *Keys) Has(key string) bool { _, have := s.Find(key); return have }

// Add adds a key and its offset.
func (s *Keys) Add(key string, at uint32) {
	if s.index == nil && s.count < indexedKeys {
		s.few[s.count] = keyOffset{key, at}
		s.count++
		return
	}
	if s.index == nil {
		s.index = make(map[string]uint32, 4*indexedKeys)
		for _, k := range s.few {
			s.index[k.key] = k.at
		}
	}
	s.index[key] = at
}

// AddDuplicate reports a duplicate key.
func AddDuplicate(out *model.Problems, pos model.Position, key string, first model.Position) {
	out.Add(pos, "keep one of them", "duplicate key `%s`, first at %s", key, first)
}
