package files_test

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/actor"
)

func TestMain(m *testing.M) {
	actor.Main(m, map[string]func() error{"writer": playWriter, "idler": playIdler})
}

// playWriter begins a run and writes a file with endless content. It prints "ready" when the temporary file
// has data.
func playWriter() error {
	d := files.New(files.Options{StateDir: os.Args[1]})
	if err := d.BeginRun(context.Background(), files.RunOptions{}); err != nil {
		return err
	}
	content := io.MultiReader(strings.NewReader(strings.Repeat("x", 9<<20)), saying{}, os.Stdin)

	return d.Write(context.Background(), os.Args[2], content, files.OwnAttrs(0o644))
}

// saying is read after all that stands before it was written.
type saying struct{}

func (saying) Read([]byte) (int, error) {
	actor.Ready()

	return 0, io.EOF
}

// playIdler does nothing until its input ends.
func playIdler() error {
	actor.Ready()
	_, err := io.Copy(io.Discard, os.Stdin)

	return err
}
