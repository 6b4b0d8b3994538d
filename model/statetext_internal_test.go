package model

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// filled returns a value with something in each field, and in each list and mapping.
func filled(t *testing.T, of reflect.Type) reflect.Value {
	t.Helper()
	out := reflect.New(of).Elem()
	if of == reflect.TypeFor[time.Time]() {
		out.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)))
		return out
	}
	switch of.Kind() {
	case reflect.Struct:
		for i := range of.NumField() {
			out.Field(i).Set(filled(t, of.Field(i).Type))
		}
	case reflect.Slice:
		out.Set(reflect.Append(out, filled(t, of.Elem()), filled(t, of.Elem())))
	case reflect.Map:
		out.Set(reflect.MakeMap(of))
		out.SetMapIndex(filled(t, of.Key()), filled(t, of.Elem()))
		out.SetMapIndex(reflect.ValueOf("another").Convert(of.Key()), filled(t, of.Elem()))
	case reflect.Pointer:
		out.Set(reflect.New(of.Elem()))
		out.Elem().Set(filled(t, of.Elem()))
	case reflect.String:
		out.SetString("a text")
	case reflect.Bool:
		out.SetBool(true)
	case reflect.Int, reflect.Int64:
		out.SetInt(7_000_000)
	case reflect.Uint64:
		out.SetUint(1 << 40)
	default:
		t.Fatalf("no value for %s: add one", of)
	}

	return out
}

// TestStatesOfNodesAreReadQuickly: each field that a node may write is read without the library, which would take
// several times as long.
func TestStatesOfNodesAreReadQuickly(t *testing.T) {
	t.Parallel()
	full, ok := filled(t, reflect.TypeFor[NodeState]()).Interface().(NodeState)
	if !ok {
		t.Fatal("no state")
	}
	said := full
	said.Message, said.Host = "\"a\" → <b> \\ \n", "wéb"
	for name, want := range map[string]NodeState{"full": full, "empty": {}, "no group": {Groups: []string{}}, "with escapes": said} {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		r := NewStateReader()
		for range 2 {
			var got NodeState
			if !r.quick(text, &got) {
				t.Fatalf("%s: %s is left to the library", name, text)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got %+v, want %+v", name, got, want)
			}
		}
	}
}

// TestSharedTexts checks that equal texts share memory and that long texts are not stored.
// Two texts may take the same slot, which depends on a random seed. Several readers are therefore tried.
func TestSharedTexts(t *testing.T) {
	t.Parallel()
	short, long := strings.Repeat("x", maxShared), strings.Repeat("y", maxShared+1)
	stored := map[string]bool{}
	for range 20 {
		r := NewStateReader()
		for _, version := range []string{short, long} {
			text, err := json.Marshal(NodeState{Version: version})
			if err != nil {
				t.Fatal(err)
			}
			var s NodeState
			if err := r.Decode(text, &s); err != nil || s.Version != version {
				t.Fatalf("%q: %+v, %v", version, s, err)
			}
			stored[version] = stored[version] || slices.Contains(r.texts.known[:], version)
		}
	}
	if !stored[short] || stored[long] {
		t.Errorf("short text stored: %t, long text stored: %t", stored[short], stored[long])
	}
}
