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

// record is what the state directory holds about the files of a target that
// post commands ran on.
type record struct {
	Target string          `json:"target"`
	Files  map[string]past `json:"files"`
}

// past is a rendered file, its commands, and what these left.
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

// recall returns the record of a target. A damaged one is empty: then the files
// are written, and the commands run, once more.
func recall(h *host.Host, target string) (record, error) {
	r, _, err := host.Recall[record](h, records, target)
	if r.Target != target || r.Files == nil {
		r = record{Target: target, Files: map[string]past{}}
	}

	return r, err
}

// save writes the record, also when the run is ending. It is durable afterwards.
func (r record) save(ctx context.Context, h *host.Host) error {
	return h.Remember(ctx, records, r.Target, r)
}

// digestOf returns the hex SHA-256 of a text.
func digestOf(text []byte) string {
	sum := sha256.Sum256(text)

	return hex.EncodeToString(sum[:])
}
