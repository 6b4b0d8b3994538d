package scaffold

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"
)

func TestEncodeKeepsValues(t *testing.T) {
	type text string
	list := []any{nil, time.Unix(1, 2).UTC(), true, false, 0, -1, math.MaxInt, uint64(math.MaxUint64), 1.0, math.Inf(1), "", "a\xff\x00\n", "<&>\u2028", []any{}, map[string]any{}}
	for name, tc := range map[string]struct{ v, want any }{
		"nil":        {nil, nil},
		"list":       {list, list},
		"mapping":    {map[string]any{"": 1, "a": list}, map[string]any{"": 1, "a": list}},
		"like a tag": {map[string]any{"i": "3"}, map[string]any{"i": "3"}},
		"other maps": {map[string]string{"a": "b"}, map[string]any{"a": "b"}},
		"lists":      {[]string{"a"}, []any{"a"}},
		"named":      {text("a"), "a"},
		"pointer":    {new(3), 3},
		"integers":   {[]any{int64(7), uint8(8)}, []any{7, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			encoded, err := encode(tc.v)
			if err != nil {
				t.Fatal(err)
			}
			document, err := json.Marshal(encoded)
			if err != nil {
				t.Fatal(err)
			}
			var got any
			if err := json.Unmarshal(document, &got); err != nil {
				t.Fatal(err)
			}
			if got := decode(got); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %#v", got)
			}
		})
	}
}

func TestEncodeRefuses(t *testing.T) {
	for _, v := range []any{func() {}, map[int]string{}, struct{}{}, []any{make(chan int)}} {
		if _, err := encode(v); err == nil {
			t.Errorf("it accepts %T", v)
		}
	}
}
