package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/file"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
)

// BenchmarkStable looks at a file that is as it should be, and plans: what
// nearly every resource of nearly every run comes to.
func BenchmarkStable(b *testing.B) {
	user, group := hosttest.Owner(b)
	dir, content := b.TempDir(), strings.Repeat("x", 200)
	specs := make([]*file.Spec, 1000)
	for i := range specs {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			b.Fatal(err)
		}
		specs[i] = &file.Spec{Common: model.Common{Name: path, Ensure: "present"}, Owner: user, Group: group, Mode: "0644", Content: &content}
	}
	typ, p, env := file.Type{}, file.Posix{}, resource.Env{Host: hosttest.New(b), Log: hosttest.Log(b)}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		spec := specs[i%len(specs)]
		state, err := typ.Status(b.Context(), env, p, spec)
		if err != nil {
			b.Fatal(err)
		}
		if plan, err := typ.Plan(spec, state, false); err != nil || !plan.Empty() {
			b.Fatal(plan, err)
		}
	}
}
