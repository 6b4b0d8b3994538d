package kvstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestAuthor: each revision, removals included, has the author that its writer claims, if any.
func TestAuthor(t *testing.T) {
	t.Parallel()
	_, s := kvtest.New(t)
	ctx, b, key := t.Context(), kvstore.NewAssignments(s.Store), "group.web.motd"
	anna := b.By("anna@desk\r\nKV-Operation: DEL ü")
	first, err := anna.Put(ctx, key, []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.By("bob").Replace(ctx, model.Entry{Key: key, Revision: first}, []byte("two"), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.By("carl").Replace(ctx, model.Entry{Key: key, Revision: second}, nil, true); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(ctx, key, []byte("four")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.By("dora").Delete(ctx, key, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.By(strings.Repeat("x", 300)).Put(ctx, key, []byte("six")); err != nil {
		t.Fatal(err)
	}
	if _, err := anna.Put(ctx, key, []byte("seven")); err != nil {
		t.Fatal(err)
	}
	all, err := b.History(ctx, key)
	var got []string
	for _, e := range all {
		got = append(got, fmt.Sprintf("%v %s %q", e.Deleted, e.Value, e.By))
	}
	const name = `"anna@desk\r\nKV-Operation: DEL ü"`
	if want := `false one ` + name + `|false two "bob"|true  "carl"|false four ""|true  "dora"|false six ""|false seven ` + name; err != nil || strings.Join(got, "|") != want {
		t.Errorf("%s, %v", strings.Join(got, "|"), err)
	}
	listed, err := b.List(ctx)
	if err != nil || len(listed) != 1 || fmt.Sprintf("%q", listed[0].By) != name {
		t.Errorf("%+v, %v", listed, err)
	}
	if e, err := b.Get(ctx, key); err != nil || fmt.Sprintf("%q", e.By) != name {
		t.Errorf("%+v, %v", e, err)
	}
}
