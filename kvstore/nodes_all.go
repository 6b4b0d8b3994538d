package kvstore

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
)

// Nodes returns every node sorted by name, including unreachable ones. The error wraps an
// ErrInvalidState for each unreadable state. Its node is returned as Unreadable.
func (b Nodes) Nodes(ctx context.Context) ([]model.Node, error) {
	newest, err := b.newest(ctx)
	if err != nil {
		return nil, err
	}
	var failed []error
	all := make([]model.Node, 0, len(newest))
	for _, s := range slices.SortedFunc(maps.Values(newest), byNodeName) {
		if s.err != nil {
			failed = append(failed, s.err)
		}
		if s.Node.Node != "" {
			all = append(all, s.Node)
		}
	}

	return all, errors.Join(failed...)
}

// Readable is Nodes, but ignores states that cannot be read: their nodes are Unreadable.
func (b Nodes) Readable(ctx context.Context) ([]model.Node, error) {
	all, err := b.Nodes(ctx)
	for _, err := range SplitDenials(err) {
		if !errors.Is(err, ErrInvalidState) {
			return nil, err
		}
	}

	return all, nil
}

// byNodeName compares states by node name.
func byNodeName(a, b *storedNode) int { return strings.Compare(a.Node.Node, b.Node.Node) }

// storedNode is a decoded state. A deleted state has no node name.
type storedNode struct {
	model.Node
	subject  string
	sequence uint64
	err      error
}

// newest returns the newest state of each node by subject. It uses direct gets, because a consumer
// misses states that are replaced during the scan. Direct gets miss states that a replica lacks, and
// states with unreadable headers. For administrators, newest adds these from the leader's list of
// subjects. Operators may not list the stream.
func (b Nodes) newest(ctx context.Context) (map[string]*storedNode, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var listed Listing
	var unlisted error
	var listing sync.WaitGroup
	if err := b.store.Bind(ctx, b.stream()); err != nil {
		return nil, err
	}
	isOwn := b.store.Places().InUse().IsOwn()
	if isOwn {
		listing.Go(func() { listed, unlisted = b.store.Subjects(ctx, b.stream(), b.store.Names().NodeState("*")) })
	}
	out, err := b.scan(ctx)
	if err != nil {
		cancel()
	}
	listing.Wait()
	switch {
	case err != nil:
		return nil, err
	case unlisted != nil:
		return nil, unlisted
	case !isOwn:
		return out, nil
	}

	return out, b.complete(ctx, out, listed.Subjects)
}

// complete adds the missing states of the listed subjects.
func (b Nodes) complete(ctx context.Context, out map[string]*storedNode, listed map[string]bool) error {
	for subject := range listed {
		if _, known := out[subject]; known {
			continue
		}
		m, err := b.store.Last(ctx, b.stream(), subject)
		switch {
		case errors.Is(err, ErrUnreadable):
			m = Message{Subject: subject, Forged: true, Unreadable: true}
		case errors.Is(err, model.ErrNotFound):
			continue
		case err != nil:
			return err
		}
		out[subject] = &storedNode{}
		out[subject].decode(b.store.Names(), m)
	}

	return nil
}

// decodeChunk is the number of states that a goroutine decodes at once.
const decodeChunk = 64

// scan reads the states and decodes them concurrently.
func (b Nodes) scan(ctx context.Context) (map[string]*storedNode, error) {
	read := make(chan []Message, 8)
	workers := runtime.GOMAXPROCS(0)
	decoded := make([][][]storedNode, workers)
	var decoding sync.WaitGroup
	for i := range workers {
		decoding.Go(func() {
			for messages := range read {
				part := make([]storedNode, len(messages))
				for i, m := range messages {
					part[i].decode(b.store.Names(), m)
				}
				decoded[i] = append(decoded[i], part)
			}
		})
	}
	err := b.send(ctx, read)
	close(read)
	decoding.Wait()
	if err != nil {
		return nil, err
	}
	out := make(map[string]*storedNode, len(decoded[0])*workers*decodeChunk)
	for _, part := range slices.Concat(decoded...) {
		for i := range part {
			// A state that was replaced during the scan may appear twice.
			s := &part[i]
			if known, is := out[s.subject]; !is || known.sequence < s.sequence {
				out[s.subject] = s
			}
		}
	}

	return out, nil
}

// send sends the messages of the states to a channel.
func (b Nodes) send(ctx context.Context, to chan<- []Message) error {
	var messages []Message
	for m, err := range scanAhead(ctx, b.store, b.stream(), b.store.Names().NodeState("*"), statePage) {
		if err != nil {
			return err
		}
		if messages = append(messages, m); len(messages) == decodeChunk {
			to <- messages
			messages = nil
		}
	}
	to <- messages

	return nil
}

// decode decodes a message.
func (s *storedNode) decode(n Names, m Message) {
	s.subject, s.sequence = m.Subject, m.Sequence
	if !m.Deleted() || m.Forged {
		s.err = decodeStateInto(&s.Node, stateNode(n, m.Subject), &m, time.Now())
	}
}
