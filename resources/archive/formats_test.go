package archive_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	hostarchive "github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/testing/hosttest"
)

func xzipped(t testing.TB, text string) string {
	t.Helper()

	return compressed(t, text, func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) })
}

func zstandard(t testing.TB, text string) string {
	t.Helper()

	return compressed(t, text, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) })
}

func compressed(t testing.TB, text string, open func(io.Writer) (io.WriteCloser, error)) string {
	t.Helper()
	var out bytes.Buffer
	w, err := open(&out)
	check(t, err)
	_, err = io.WriteString(w, text)
	check(t, err)
	check(t, w.Close())

	return out.String()
}

// bzipped is a tar.bz2 in base64 with the file app/tool. Go has no bzip2 compressor.
const bzipped = `QlpoOTFBWSZTWRdDJkgAAHN7hMkQAEJAAP+AAEBgBN4AAACACCAAdQlSZPTUDTQ09RpkElGppoGg0D1A/3OLMhBOQCRXW4ntCRSCSCKwiM8XaSKwAZHD6a7Pi6A2PKorQO6VDAmPJ1I+WQt9e6uSD8XckU4UJAXQyZIA`

// TestFormats detects each format by extension, by content without an extension, and by the
// format property.
func TestFormats(t *testing.T) {
	plain := packTar(t, regular("app/tool", "tool\n", 0o755))
	bz2, err := base64.StdEncoding.DecodeString(bzipped)
	check(t, err)
	for extension, content := range map[string]string{
		".tar": plain, ".tar.gz": zipped(t, plain), ".tar.bz2": string(bz2), ".tar.xz": xzipped(t, plain), ".tar.zst": zstandard(t, plain),
		".zip": packZip(t, file{name: "app/tool", content: "tool\n", mode: 0o755}),
	} {
		for name, format := range map[string]string{extension: "", "": "", "-latest": "", ".download.rar": strings.TrimPrefix(extension, ".")} {
			x, err := unpack(t, name, content, func(x *trial) { x.spec.Format = format })
			check(t, err)
			if tree := hosttest.Snapshot(t, x.spec.ExtractParent); tree["app/tool"].Digest != sum("tool\n") {
				t.Errorf("%s as %q with format %q: %+v", extension, name, format, tree)
			}
		}
	}
}

// TestHugeDictionaries refuses archives that need more memory than maxWindow to decompress.
func TestHugeDictionaries(t *testing.T) {
	text := xzipped(t, packTar(t, regular("a", "x", 0o644)))
	at := strings.Index(text, "\x21\x01") + 2
	refuses(t, ".tar.xz", text[:at]+"\x28"+text[at+1:], hostarchive.ErrNotArchive)
	refuses(t, ".tar.zst", "\x28\xb5\x2f\xfd\x00\xf8"+strings.Repeat("\x00", 100), hostarchive.ErrNotArchive)
}
