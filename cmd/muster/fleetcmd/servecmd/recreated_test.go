package servecmd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestBucketsCreatedAgain: where a bucket was created again, what is known is what it has, and what it gets,
// although its revisions begin anew, and it says so. So it is for who may make no consumer.
func TestBucketsCreatedAgain(t *testing.T) {
	t.Parallel()
	for _, bucket := range []string{"MUSTER_NODES", "MUSTER_MANIFESTS"} {
		for _, viewer := range []bool{false, true} {
			t.Run(fmt.Sprint(bucket, " viewer ", viewer), func(t *testing.T) {
				t.Parallel()
				g := kvtest.ByConfig(t)
				store := g.Admin
				admin := nats.UserInfo("admin", "admin")
				used := kvtest.Bind(t, g.Server, admin)
				if viewer {
					used = kvtest.BindTo(t, g.Connect(t, kvtest.Viewer))
				}
				for i := range 5 {
					if _, err := store.Put(t.Context(), "group.all.old", fmt.Append(nil, "muster: {data: {i: ", i, "}}")); err != nil {
						t.Fatal(err)
					}
					put(t, store, "old", 1)
				}
				s := serveFleet(t, used, access.Options{})
				s.complete()
				kvtest.Recreate(t, kvtest.Manager(t, g.Server, admin), "KV_"+bucket, func(*api.StreamConfig) {})
				put(t, store, "new", 1)
				if _, err := store.Put(t.Context(), "group.all.new", []byte("muster: {}")); err != nil {
					t.Fatal(err)
				}
				kvtest.Eventually(t, "only what there is is known", func() (bool, string) {
					text := s.text("api/v1/nodes") + s.text("api/v1/manifests")
					old := map[string]string{"MUSTER_NODES": `"node":"old"`, "MUSTER_MANIFESTS": `"name":"old"`}[bucket]
					return strings.Contains(text, `"node":"new"`) && strings.Contains(text, `"name":"new"`) && !strings.Contains(text, old), text
				})
				if page := s.text("/"); !strings.Contains(page, "was created again") {
					t.Error("the page does not say so")
				}
			})
		}
	}
}
