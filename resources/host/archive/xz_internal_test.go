package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"
)

// xzOf compresses random bytes, which give chunks with and without compression, in several blocks.
func xzOf(t *testing.T, check byte) []byte {
	t.Helper()
	content := []byte(strings.Repeat("muster ", 10_000))
	for range 100_000 {
		content = append(content, byte(rand.Uint32()))
	}
	var out bytes.Buffer
	w, err := xz.WriterConfig{BlockSize: 50_000, CheckSum: check, NoCheckSum: check == xz.None}.NewWriter(&out)
	if err == nil {
		_, err = w.Write(content)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}

	return out.Bytes()
}

// enlarge sets the dictionary of the last block to 1.5 GiB, with a valid header.
func enlarge(t *testing.T, file []byte) []byte {
	t.Helper()
	file = bytes.Clone(file)
	for at := len(file) - 16; at > 0; at-- {
		header := file[at : at+8]
		sum := file[at+8 : at+12]
		if header[0] == 2 && header[2] == 0x21 && crc32.ChecksumIEEE(header) == binary.LittleEndian.Uint32(sum) {
			header[4] = 0x25
			binary.LittleEndian.PutUint32(sum, crc32.ChecksumIEEE(header))
			return file
		}
	}
	t.Fatal("no block")

	return nil
}

func TestCheckXZ(t *testing.T) {
	t.Parallel()
	for _, check := range []byte{xz.None, xz.CRC32, xz.CRC64, xz.SHA256} {
		file := xzOf(t, check)
		large := enlarge(t, file)
		for name, c := range map[string]struct {
			file []byte
			want string
		}{
			"blocks":                      {file, ""},
			"streams":                     {bytes.Join([][]byte{file, file}, nil), ""},
			"streams with padding":        {bytes.Join([][]byte{file, file, nil}, make([]byte, 8)), ""},
			"a large block":               {large, "its dictionary is larger than 128 MiB"},
			"a large block, later stream": {bytes.Join([][]byte{file, large}, make([]byte, 4)), "its dictionary is larger than 128 MiB"},
			"half":                        {file[:len(file)/2], "unexpected EOF"},
			"half a header":               {file[:8], "unexpected EOF"},
			"no footer":                   {file[:len(file)-1], "unexpected EOF"},
			"nothing":                     {nil, "unexpected EOF"},
		} {
			err := checkXZ(bytes.NewReader(c.file))
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrNotArchive) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("check %d, %s: %v", check, name, err)
			}
		}
	}
}
