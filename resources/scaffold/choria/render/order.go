package render

import (
	"maps"
	"reflect"
	"sync"
	_ "unsafe" // for go:linkname

	"github.com/CloudyKit/jet/v6"

	"github.com/musterfleet/muster/resources/template"
)

// rangers are what Jet makes of what is ranged over, by its kind. Jet lets nobody
// say how it goes through a mapping, which is in another order every time: a
// file made of one would never be as it must be. Should Jet call this otherwise
// one day, muster cannot be linked.
//
//go:linkname rangers github.com/CloudyKit/jet/v6.poolsByKind
var rangers map[reflect.Kind]*sync.Pool

// orderMappings has Jet go through mappings in the order of their keys, in this process.
func orderMappings() {
	maps.Copy(rangers, map[reflect.Kind]*sync.Pool{reflect.Map: {New: func() any { return new(inOrder) }}})
}

// inOrder goes through one mapping after the other.
type inOrder struct{ jet.Ranger }

// Setup begins with a mapping.
func (o *inOrder) Setup(v reflect.Value) { o.Ranger = template.InOrder(v) }
