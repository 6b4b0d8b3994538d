package template

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/CloudyKit/jet/v6"
)

// nameInOrder is the function that returns the operand of a range. The library returns the entries of
// a mapping in a random order.
const nameInOrder = "__in_order"

// InOrder returns a mapping as a ranger that sorts the keys, and other values unchanged.
func InOrder(args jet.Arguments) reflect.Value {
	of := args.Get(0)
	m := of
	for m.IsValid() && (m.Kind() == reflect.Interface || m.Kind() == reflect.Pointer) && !m.IsNil() {
		m = m.Elem()
	}
	if !m.IsValid() || m.Kind() != reflect.Map {
		return of
	}

	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		if a.CanInt() && b.CanInt() {
			return cmp.Compare(a.Int(), b.Int())
		}
		return cmp.Compare(fmt.Sprint(a.Interface()), fmt.Sprint(b.Interface()))
	})

	return reflect.ValueOf(&orderedRanger{m: m, keys: keys})
}

// orderedRanger returns the entries of a mapping, sorted by key.
type orderedRanger struct {
	m    reflect.Value
	keys []reflect.Value
}

// ProvidesIndex reports whether there are keys beside the values.
func (*orderedRanger) ProvidesIndex() bool { return true }

// Range returns the next entry. It skips entries that were removed during the loop.
func (r *orderedRanger) Range() (key, value reflect.Value, end bool) {
	for len(r.keys) > 0 {
		key, r.keys = r.keys[0], r.keys[1:]
		if value = r.m.MapIndex(key); value.IsValid() {
			return key, value, false
		}
	}

	return key, value, true
}
