package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/musterfleet/muster/model"
)

// ledger is the file of what was dropped and is not told yet. It is one event,
// which takes the number of the first report it tells of, so that it comes where
// the gap begins; what is dropped later is folded into it until it is handed
// over. Then it stays as it is until it is acknowledged, and the next one tells
// the rest.
type ledger struct {
	// Sent is the event that was handed over, and Told what it tells.
	Sent *model.Report `json:"sent,omitempty"`
	Told Lost          `json:"told,omitzero"`
	// Before is what was dropped besides, and Dropping what was just about to be:
	// after a kill it may be there still. Event tells both; where nothing is Sent it
	// may have been handed over too.
	Before   Lost          `json:"before,omitzero"`
	Dropping Lost          `json:"dropping,omitzero"`
	Event    *model.Report `json:"event,omitempty"`
}

func (b *Outbox) ledgerPath() string { return filepath.Join(b.opts.Dir, "dropped.json") }

// loadLedger reads what was dropped. A file that cannot be read is logged: the
// reports themselves must not suffer.
func (b *Outbox) loadLedger() error {
	data, err := os.ReadFile(b.ledgerPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var l ledger
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err != nil {
		b.opts.Log.Error("what was dropped from the outbox cannot be read", "file", b.ledgerPath(), "error", err)
		return nil
	}
	b.sent, b.told, b.lost, b.event = l.Sent, l.Told, l.Before, l.Event
	dropped := l.Dropping
	for _, s := range b.segments {
		if dropped.Reports == 0 {
			break
		}
		records, err := s.all()
		if err != nil {
			return err
		}
		for _, r := range records {
			if r.seq > b.acked && dropped.has(r.seq) {
				dropped.remove(r.seq, r.seq, 1)
				b.event = nil
			}
		}
	}
	b.lost.join(dropped)
	b.stale = b.event == nil
	if b.sent == nil && b.event != nil {
		b.send()
	}

	return nil
}

// send makes the event one that was handed over.
func (b *Outbox) send() { b.sent, b.told, b.event, b.lost = b.event, b.lost, nil, Lost{} }

// dropping makes durable, before it is done, that reports are dropped.
func (b *Outbox) dropping(more Lost) error {
	if more.Reports == 0 {
		return nil
	}
	b.opts.Log.Warn("reports are dropped", "reports", more.Reports, "from", more.Ranges[0].From, "to", more.Ranges[len(more.Ranges)-1].To)
	all := b.lost.clone()
	all.join(more)
	event := b.makeEvent(all)
	if err := b.writeLedger(ledger{Sent: b.sent, Told: b.told, Before: b.lost, Dropping: more, Event: event}); err != nil {
		return err
	}
	b.lost, b.event, b.stale = all, event, false
	b.signal()

	return nil
}

func (b *Outbox) makeEvent(l Lost) *model.Report {
	event := b.opts.Dropped(l.clone())
	event.Seq = l.Ranges[0].From

	return &event
}

// settleLedger writes what was lost otherwise than by dropping, or was told.
func (b *Outbox) settleLedger() error {
	if !b.stale {
		return nil
	}
	if b.lost.Reports <= 0 {
		b.lost, b.event = Lost{}, nil
	} else {
		b.lost.bound()
		b.event = b.makeEvent(b.lost)
	}
	if b.sent == nil && b.event == nil {
		b.stale = false
		return errors.Join(removeIfThere(b.ledgerPath()), syncDir(b.opts.Dir))
	}
	if err := b.writeLedger(ledger{Sent: b.sent, Told: b.told, Before: b.lost, Event: b.event}); err != nil {
		return err
	}
	b.stale = false

	return nil
}

func (b *Outbox) writeLedger(l ledger) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if err := replaceFile(b.ledgerPath(), data); err != nil {
		return fmt.Errorf("outbox: %w", err)
	}

	return syncDir(b.opts.Dir)
}

// withEvent puts the event about dropped reports among those that are handed over.
func (b *Outbox) withEvent(reports []model.Report, max int) []model.Report {
	event := b.sent
	if event == nil {
		if b.lost.Reports <= 0 {
			return reports
		}
		if b.event == nil {
			b.event = b.makeEvent(b.lost)
		}
		event = b.event
	}
	at := 0
	for at < len(reports) && reports[at].Seq < event.Seq {
		at++
	}
	if at == len(reports) && at > 0 {
		return reports // its turn has not come
	}
	if b.sent == nil {
		b.send()
	}
	out := append(append(append([]model.Report{}, reports[:at]...), *event), reports[at:]...)

	return out[:min(max, len(out))]
}

// tell takes out of the ledger what was acknowledged: the event itself, and what
// was dropped while it was on its way and arrived.
func (b *Outbox) tell(seq uint64) {
	if b.sent != nil && b.sent.Seq <= seq {
		b.sent, b.told, b.stale = nil, Lost{}, true
	}
	for _, handed := range b.handed {
		if handed <= seq && b.lost.has(handed) {
			b.lost.remove(handed, handed, 1)
			b.event, b.stale = nil, true
		}
	}
	b.handed = nil
}

// Drop takes a report out that cannot be handed over. The event about dropped
// ones tells of it.
func (b *Outbox) Drop(seq uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seq <= b.acked || seq >= b.next {
		return nil
	}
	b.handed = nil
	one := Lost{}
	one.add(seq, seq, 1)
	if err := b.dropping(one); err != nil {
		return err
	}

	return b.ack(seq)
}
