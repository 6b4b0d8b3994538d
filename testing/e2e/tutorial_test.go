package e2e

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/musterfleet/muster/testing/markdown"
)

// TestTutorial follows docs/tutorial.md to its end. It uses the muster of this checkout and the nats-server
// of go.mod, whose version must be the one of the tutorial. The tutorial changes /etc as root; the test
// changes a directory. TestTutorialOnDebian in testing/rigs also runs the blocks that need Debian.
func TestTutorial(t *testing.T) {
	t.Parallel()
	f := follow(t)
	downloads, onDebian := 0, 0
	f.page(docsPage(t, "tutorial.md"), func(b markdown.Block) {
		if strings.HasPrefix(b.Info, "debian ") {
			onDebian++
			return
		}
		downloads++
		checkDownload(t, b)
	})
	if downloads != 1 || onDebian != 4 || len(f.terminals) != 4 {
		t.Errorf("%d downloads, %d blocks for Debian, %d terminals", downloads, onDebian, len(f.terminals))
	}
	address := f.addresses.Replace("http://127.0.0.1:8420/")
	for _, path := range []string{"", "api/v1/overview"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(text), "motd") {
			t.Errorf("/%s: %s %v %s", path, response.Status, err, text)
		}
	}
}

// checkDownload compares the versions in a block with go.mod.
func checkDownload(t *testing.T, b markdown.Block) {
	t.Helper()
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	module, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := ""
	for _, r := range module.Require {
		if r.Mod.Path == "github.com/nats-io/nats-server/v2" {
			server = r.Mod.String()
		}
	}
	for _, want := range []string{"go install " + server, "go install " + module.Module.Mod.Path + "/cmd/muster@latest"} {
		if b.Info != "download" || !strings.Contains(b.Text, want+"\n") {
			t.Errorf("line %d: %q is missing in %s\n%s", b.Line, want, b.Info, b.Text)
		}
	}
	if want := module.Go.Version; !strings.Contains(docsPage(t, "tutorial.md"), "Go](https://go.dev/doc/install) "+want+" ") {
		t.Errorf("the tutorial does not name Go %s", want)
	}
}
