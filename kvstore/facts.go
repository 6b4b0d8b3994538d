package kvstore

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

const fewNodes = 50

// maxUnreadableReason limits the size in bytes of a reason that contains text from a node.
const maxUnreadableReason = 200

// Facts yields the facts of some nodes, in any order. It skips nodes without stored facts. It may yield a node again if the
// node stores its facts during the read. An error is the last item.
func (b Nodes) Facts(ctx context.Context, nodes []string) iter.Seq2[model.NodeFacts, error] {
	return nodeDocuments[model.NodeFacts]{Names.NodeFacts, decodeFacts}.read(ctx, b, nodes)
}

type nodeDocuments[D any] struct {
	subject func(n Names, node string) string
	decode  func(node string, m Message) D
}

func (d nodeDocuments[D]) read(ctx context.Context, b Nodes, nodes []string) iter.Seq2[D, error] {
	if len(nodes) <= fewNodes {
		return d.readEach(ctx, b, nodes)
	}
	names := map[string]bool{}
	for _, n := range nodes {
		names[n] = true
	}

	return func(yield func(D, error) bool) {
		n := b.store.Names
		for m, err := range scanDirect(ctx, b.store, b.stream, d.subject(n, "*"), statePage) {
			if err != nil {
				yield(*new(D), err)
				return
			}
			node := stateNode(n, m.Subject)
			if !names[node] || m.Deleted() && !m.Forged {
				continue
			}
			if !yield(d.decode(node, m), nil) {
				return
			}
		}
	}
}

func (d nodeDocuments[D]) readEach(ctx context.Context, b Nodes, nodes []string) iter.Seq2[D, error] {
	return func(yield func(D, error) bool) {
		for _, node := range nodes {
			m, found, err := b.store.Find(ctx, b.stream, d.subject(b.store.Names, node))
			if err != nil {
				yield(*new(D), err)
				return
			}
			if found && (!m.Deleted() || m.Forged) && !yield(d.decode(node, m), nil) {
				return
			}
		}
	}
}

func decodeFacts(node string, m Message) model.NodeFacts {
	f := model.NodeFacts{Node: node}
	err := m.Refusal()
	if err == nil {
		err = json.Unmarshal(m.Data, &f.Facts)
	}
	if err != nil {
		return model.NodeFacts{Node: node, Unreadable: model.Line(err.Error(), maxUnreadableReason)}
	}

	return f
}

const (
	// maxInventory and maxInventoryPlain limit the size in bytes of a packed and an unpacked
	// inventory.
	maxInventory      = 64 << 10
	maxInventoryPlain = 16 << 20
	// maxInventoryHead and maxInventoryPackage limit the size in bytes of the first line and of the
	// line of a package.
	maxInventoryHead    = 4 << 10
	maxInventoryPackage = 1 << 10
)

// PutInventory stores the packed inventory of a node, without an expiry. An inventory above 64 KiB loses the versions, and
// then packages, until it fits; Incomplete then has the reason.
func (b Nodes) PutInventory(ctx context.Context, i model.Inventory) error {
	return b.put(ctx, "inventory", i.Node, Names.NodeInventory, func() ([]byte, error) { return packInventory(i) })
}

func packInventory(i model.Inventory) ([]byte, error) {
	data, err := compressInventory(i)
	if err != nil || len(data) <= maxInventory {
		return data, err
	}
	i.Packages = slices.Clone(i.Packages)
	for at, p := range i.Packages {
		i.Packages[at] = model.Package{Name: p.Name, Manager: p.Manager}
	}
	i.Packages = slices.Compact(i.Packages)
	i.Incomplete = fmt.Sprintf("it exceeds %d KiB: versions are missing", maxInventory>>10)
	all := len(i.Packages)
	for {
		if data, err = compressInventory(i); err != nil || len(data) <= maxInventory {
			return data, err
		}
		i.Packages = i.Packages[:len(i.Packages)*3/4]
		i.Incomplete = fmt.Sprintf("it exceeds %d KiB: versions, and %d of %d packages, are missing", maxInventory>>10, all-len(i.Packages), all)
	}
}

// compressInventory returns an inventory in gzip: a line of JSON without the packages, and a line per
// package with its manager, name, version and architecture, separated by tabs. This reads several
// times faster than JSON. It skips packages with a tab or a line break, and packages above 1 KiB.
func compressInventory(i model.Inventory) ([]byte, error) {
	var out, text bytes.Buffer
	packages := i.Packages
	i.Packages = nil
	err := json.NewEncoder(&text).Encode(i)
	for _, p := range packages {
		fields := []string{p.Manager, p.Name, p.Version, p.Arch}
		if line := strings.Join(fields, "\t"); strings.Count(line, "\t") < len(fields) && !strings.Contains(line, "\n") && len(line) < maxInventoryPackage {
			text.WriteString(line + "\n")
		}
	}
	w := gzip.NewWriter(&out)
	_, failed := w.Write(text.Bytes())
	err = errors.Join(err, failed, w.Close())

	return out.Bytes(), err
}

// Inventories yields the inventories of some nodes, see Facts.
func (b Nodes) Inventories(ctx context.Context, nodes []string) iter.Seq2[model.Inventory, error] {
	return nodeDocuments[model.Inventory]{Names.NodeInventory, unpackInventory}.read(ctx, b, nodes)
}

// unpackInventory returns the inventory of a node. Nodes are not trusted, so it enforces all limits.
func unpackInventory(node string, m Message) (i model.Inventory) {
	err := m.Refusal()
	if err == nil {
		err = decompressInventory(m.Data, &i)
	}
	if err == nil && i.Node != node {
		err = fmt.Errorf("it names node %.80q", i.Node)
	}
	if err != nil {
		return model.Inventory{Node: node, Unreadable: model.Line(err.Error(), maxUnreadableReason)}
	}

	return i
}

func decompressInventory(data []byte, i *model.Inventory) error {
	if len(data) > maxInventory {
		return fmt.Errorf("it exceeds %d KiB", maxInventory>>10)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	data, err = io.ReadAll(io.LimitReader(r, maxInventoryPlain+1))
	switch {
	case err != nil:
		return err
	case len(data) > maxInventoryPlain:
		return fmt.Errorf("it exceeds %d MiB unpacked", maxInventoryPlain>>20)
	}
	line, rest, _ := bytes.Cut(data, []byte("\n"))
	if len(line) > maxInventoryHead {
		return fmt.Errorf("its first line exceeds %d KiB", maxInventoryHead>>10)
	}
	var head struct { // without packages, because a list of small objects takes far more memory than its text
		Node, Incomplete string
		At               time.Time
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return err
	}
	*i = model.Inventory{Node: head.Node, At: head.At, Incomplete: model.Line(head.Incomplete, maxUnreadableReason)}

	return unpackPackages(string(rest), i)
}

func unpackPackages(lines string, i *model.Inventory) error {
	for line := range strings.Lines(lines) {
		manager, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		name, rest, _ := strings.Cut(rest, "\t")
		version, arch, ok := strings.Cut(rest, "\t")
		switch {
		case !ok, len(line) > maxInventoryPackage:
			return fmt.Errorf("invalid package line %.80q", line)
		case len(i.Packages) == model.MaxPackages:
			return fmt.Errorf("it has more than %d packages", model.MaxPackages)
		}
		i.Packages = append(i.Packages, model.Package{Name: name, Version: version, Arch: arch, Manager: manager})
	}

	return nil
}
