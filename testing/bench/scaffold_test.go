package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkScaffold renders 1,000 templates of 20 lines in 10 directories: into
// an empty target, and into one where everything is as it must be.
func BenchmarkScaffold(b *testing.B) {
	const n = 1000
	muster, root := build(b), b.TempDir()
	for _, engine := range []string{"jet", "go"} {
		action := "[[ Data.name ]]"
		if engine == "go" {
			action = "{{ .Data.name }}"
		}
		source, target := filepath.Join(root, engine+"-source"), filepath.Join(root, engine+"-target")
		for i := range n {
			path := filepath.Join(source, fmt.Sprintf("d%d/f%03d.conf", i%10, i))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(strings.Repeat("name = "+action+"\n", 20)), 0o644); err != nil {
				b.Fatal(err)
			}
		}
		manifest := filepath.Join(root, engine+".yaml")
		text := fmt.Sprintf("data: {name: app}\nmuster:\n  resources:\n    - scaffold:\n        - %s: {source: %s, engine: %s, purge: true}\n", target, source, engine)
		if err := os.WriteFile(manifest, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
		b.Run(engine+"/first", func(b *testing.B) {
			var u usage
			for b.Loop() {
				b.StopTimer()
				if err := os.RemoveAll(target); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				u.run(b, muster, "--log-level", "error", "apply", manifest)
			}
			u.report(b)
		})
		b.Run(engine+"/stable", func(b *testing.B) {
			var u usage
			for b.Loop() {
				u.run(b, muster, "--log-level", "error", "apply", manifest)
			}
			u.report(b)
		})
	}
}
