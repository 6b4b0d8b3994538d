package scaffold

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"

	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
)

// records is the folder of the records in the state directory.
const records = "scaffolds"

// record is the record of the files of a target with post commands, in the state directory.
type record struct {
	Target string          `json:"target"`
	Files  map[string]past `json:"files"`
}

// past is a rendered file, its commands, and the file after the commands.
type past struct {
	Rendered   string      `json:"rendered"`
	Mode       fs.FileMode `json:"mode"`
	Post       string      `json:"post"`
	Left       string      `json:"left"`
	Attributes files.Attrs `json:"attributes"`
}

func pastOf(f file, commands [][]string, left string, entry files.Entry) past {
	return past{Rendered: f.digest, Mode: f.mode, Post: digestOf(fmt.Appendf(nil, "%q", commands)), Left: left, Attributes: attributesOf(entry)}
}

// recall returns the record of a target. A damaged record is empty: then the files are written and the
// commands run once more.
func recall(h *host.Host, target string) (record, error) {
	r, _, err := host.Recall[record](h, records, target)
	if r.Target != target || r.Files == nil {
		r = record{Target: target, Files: map[string]past{}}
	}

	return r, err
}

// save writes the record durably, even if the run is ending.
func (r record) save(ctx context.Context, h *host.Host) error {
	return h.Remember(ctx, records, r.Target, r)
}

// digestOf returns the hex SHA-256 of a text.
func digestOf(text []byte) string {
	sum := sha256.Sum256(text)

	return hex.EncodeToString(sum[:])
}
