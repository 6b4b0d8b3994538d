package yamlread

import "github.com/musterfleet/muster/model"

// Keys finds out which keys a mapping has already: by looking for small
// mappings, which nearly all are, and by an index for large ones.
type Keys struct {
	// few are the first keys, until index has all.
	few   [indexedKeys]keyPlace
	count int
	index map[string]uint32
}

// keyPlace is a key and its offset.
type keyPlace struct {
	key string
	at  uint32
}

const indexedKeys = 12

// Find returns the place of a key that was added before.
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

// Has reports whether a key was added before.
func (s *Keys) Has(key string) bool { _, have := s.Find(key); return have }

// Add notes a key and its offset.
func (s *Keys) Add(key string, at uint32) {
	if s.index == nil && s.count < indexedKeys {
		s.few[s.count] = keyPlace{key, at}
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

// AddTwice adds the problem of a key that is there twice.
func AddTwice(out *model.Problems, pos model.Position, key string, first model.Position) {
	out.Add(pos, "keep one of them", "duplicate key `%s`, first at %s", key, first)
}
