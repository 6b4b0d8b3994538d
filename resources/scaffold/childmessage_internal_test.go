package scaffold

import (
	"bytes"
	"encoding/gob"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestMessagesKeepValues(t *testing.T) {
	registerMessages()
	type text string
	list := []any{nil, time.Unix(1, 2).UTC(), true, false, 0, -1, math.MaxInt, int64(7), uint64(math.MaxUint64), 1.0, math.Inf(1), "", "a\xff\x00\n", []byte("b"), []any{}, map[string]any{}}
	for name, tc := range map[string]struct{ v, want any }{
		"nil":        {nil, nil},
		"list":       {list, list},
		"mapping":    {map[string]any{"": 1, "a": list}, map[string]any{"": 1, "a": list}},
		"long":       {strings.Repeat("x", 200_000), strings.Repeat("x", 200_000)},
		"other maps": {map[string]string{"a": "b"}, map[string]any{"a": "b"}},
		"lists":      {[]string{"a"}, []any{"a"}},
		"named":      {text("a"), "a"},
		"pointer":    {new(3), 3},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := plain(tc.v)
			if err != nil {
				t.Fatal(err)
			}
			var conn bytes.Buffer
			var got functionReply
			if err := errors.Join(gob.NewEncoder(&conn).Encode(functionReply{Value: v}), gob.NewDecoder(&conn).Decode(&got)); err != nil {
				t.Fatal(err)
			}
			if got := copyMessage(got.Value); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %#v", got)
			}
		})
	}
}

func TestValuesOfNoMessage(t *testing.T) {
	for _, v := range []any{func() {}, map[int]string{}, struct{}{}, []any{make(chan int)}} {
		if _, err := plain(v); err == nil {
			t.Errorf("a message carries %T", v)
		}
	}
}

// Ranges go through a function, whatever is around them, and nothing else does.
func TestInOrder(t *testing.T) {
	for text, want := range map[string]string{
		"[[ range Data.m ]]x[[ end ]]":             "[[ range __in_order(Data.m) ]]x[[ end ]]",
		"[[- range k, v := Data.m -]]":             "[[- range k, v := __in_order(Data.m) -]]",
		"[[range Data.m[\"]]\"] ]]":                "[[range __in_order(Data.m[\"]]\"]) ]]",
		"[[ range i := slice(\"]]\", `]]`) ]]]]":   "[[ range i := __in_order(slice(\"]]\", `]]`)) ]]]]",
		"[[ range x ]][[ range y = x ]]\n":         "[[ range __in_order(x) ]][[ range y = __in_order(x) ]]\n",
		"[[ range\n  x\n]]":                        "[[ range\n  __in_order(x)\n]]",
		"[[ range ]] [[ ranges ]] range x ]]":      "[[ range ]] [[ ranges ]] range x ]]",
		"[[ if x ]]don't[[ end ]] [[ arrange x ]]": "[[ if x ]]don't[[ end ]] [[ arrange x ]]",
	} {
		if got := inOrder("[[", "]]")(text); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// Calls of the library's functions are found wherever they stand, and nothing
// that only looks like one. Printed values are checked.
func TestPrepareFindsCalls(t *testing.T) {
	for name, tc := range map[string]struct {
		r          request
		text, want string
	}{
		"jet":                {request{Left: "[[", Right: "]]"}, "é [[ write(\"render\", render(\"write\", .)) ]] write {* render *}", "é [[ __write(\"render\", __render(\"write\", .)) ]] write {* render *}"},
		"jet, within others": {request{Left: "[[", Right: "]]"}, "[[- if write(\"a\", \"b\") -]][[ else ]][[ x := Data.write + render(\"a\", .) ]][[ end ]][[ block b(y=render(\"a\", .)) ]][[ write(\"b\", \"\") ]][[ end ]][[ try ]][[ catch e ]][[ \"a\" | write: \"b\" ]][[ end ]]", "[[- if __write(\"a\", \"b\") -]][[ else ]][[ x := Data.write + __render(\"a\", .) ]][[ end ]][[ block b(y=__render(\"a\", .)) ]][[ __write(\"b\", \"\") ]][[ end ]][[ try ]][[ catch e ]][[ \"a\" | __write: \"b\" ]][[ end ]]"},
		"jet, a range of it": {request{Left: "[[", Right: "]]"}, "[[ range render(\"a\", .) ]][[ end ]]", "[[ range __in_order(__render(\"a\", .)) ]][[ end ]]"},
		"go":                 {request{Go: true, Left: "{{", Right: "}}"}, "é {{ write \"render\" (render \"write\" .) }} write {{/* don't render */}}{{ .write }}{{ $write := 1 }}", "é {{ __write \"render\" (__render \"write\" .) | __printed \"write \\\"render\\\" (render \\\"write\\\" .)\" }} write {{/* don't render */}}{{ .write | __printed \".write\" }}{{ $write := 1 }}"},
		"go, within others":  {request{Go: true, Left: "<<", Right: ">>"}, "<< define \"write\" >><<- if write \"a\" \"b\" ->><< end >><< end >><< template \"write\" (render \"a\" .) >><< with render \"a\" . >><< . | write \"b\" >><< end >>", "<< define \"write\" >><<- if __write \"a\" \"b\" ->><< end >><< end >><< template \"write\" (__render \"a\" .) >><< with __render \"a\" . >><< . | __write \"b\" | __printed \". | write \\\"b\\\"\" >><< end >>"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := tc.r.prepare(tc.text); got != tc.want || err != nil {
				t.Errorf("got  %q, %v\nwant %q", got, err, tc.want)
			}
		})
	}
}
