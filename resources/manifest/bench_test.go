package manifest_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/manifest"
)

// files returns a manifest of n files with 200 bytes of content.
func files(n int) []byte {
	var b bytes.Buffer
	b.WriteString("muster:\n  resources:\n    - file:\n")
	line := strings.Repeat("x", 49)
	for i := range n {
		fmt.Fprintf(&b, "        - /srv/bench/%05d/file:\n            ensure: present\n            owner: root\n            mode: \"0644\"\n            content: |\n", i)
		for range 4 {
			fmt.Fprintf(&b, "              %s\n", line)
		}
	}

	return b.Bytes()
}

func benchmarkResolve(b *testing.B, n int) {
	data := files(n)
	l := manifest.NewLoader(manifest.Options{Types: testTypes()})
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		doc, err := manifest.Parse("bench.yaml", data)
		if err != nil {
			b.Fatal(err)
		}
		r, err := l.Resolve(context.Background(), doc, manifest.Inputs{})
		if err != nil || len(r.Resources) != n {
			b.Fatal(len(r.Resources), err)
		}
	}
}

func BenchmarkResolve5000(b *testing.B)  { benchmarkResolve(b, 5000) }
func BenchmarkResolve20000(b *testing.B) { benchmarkResolve(b, 20000) }

func BenchmarkParse5000(b *testing.B) {
	data := files(5000)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := manifest.Parse("bench.yaml", data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkExpressions5000 has an expression in every resource. Half of them are equal, half
// differ.
func BenchmarkExpressions5000(b *testing.B) {
	var m bytes.Buffer
	m.WriteString("data: {name: app, pw: \"${ secret('hunter2') }\"}\nmuster:\n  resources:\n    - file:\n")
	for i := range 5000 {
		fmt.Fprintf(&m, "        - \"/srv/${ Data.name }/%d\":\n            owner: \"${ lookup('data.name') }\"\n            content: \"x ${ %d + 1 }\"\n", i, i)
	}
	l := manifest.NewLoader(manifest.Options{Types: testTypes()})
	b.ReportAllocs()
	for b.Loop() {
		doc, err := manifest.Parse("bench.yaml", m.Bytes())
		if err != nil {
			b.Fatal(err)
		}
		if _, err := l.Resolve(context.Background(), doc, manifest.Inputs{}); err != nil {
			b.Fatal(err)
		}
	}
}
